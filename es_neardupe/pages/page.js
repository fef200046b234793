// Page of a comparison: choice of the matching, scrolling of both texts together, differences only, whole lines.

// Scrolls the other text along when the reader scrolls one. Both show the same difference at the same height; between two
// differences the texts have the same words. Buttons and keys that go to a difference scroll each text themselves.
const scrollTogether = (panes, isWanted) => {
  const sides = [...panes.querySelectorAll(".text")];
  let scrolled = null;
  let layout = "";
  let places = [];

  // The first and the last pixel of each difference in both texts, and the ends of the texts.
  const measure = () => {
    const now = sides.map((side) => [side.clientWidth, side.scrollHeight]).join();
    if (now === layout) {
      return;
    }
    layout = now;
    const found = sides.map((side) => {
      const origin = side.getBoundingClientRect().top - side.scrollTop;
      const ranges = new Map();
      for (const mark of side.querySelectorAll(".d")) {
        const { top, bottom } = mark.getBoundingClientRect();
        const range = ranges.get(mark.dataset.d);
        ranges.set(mark.dataset.d, [range ? range[0] : top - origin, bottom - origin]);
      }
      return ranges;
    });
    places = [[0, 0]];
    for (const [number, range] of found[0]) {
      const twin = found[1].get(number);
      if (twin) {
        places.push([range[0], twin[0]], [range[1], twin[1]]);
      }
    }
    places.push(sides.map((side) => side.scrollHeight));
  };

  const follow = (from) => {
    measure();
    const [side, other] = [sides[from], sides[1 - from]];
    const height = Math.min(side.clientHeight, other.clientHeight) / 3;
    const place = side.scrollTop + height;
    const next = places.find((one) => one[from] > place) || places[places.length - 1];
    const last = places[Math.max(places.indexOf(next) - 1, 0)];
    const share = next[from] > last[from] ? (place - last[from]) / (next[from] - last[from]) : 0;
    const twin = last[1 - from] + Math.min(share, 1) * (next[1 - from] - last[1 - from]);
    other.scrollTop = side.scrollTop ? twin - height : 0;
  };

  const keys = ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];
  for (const kind of ["keydown", "click"]) {
    document.addEventListener(kind, () => { scrolled = null; }, true);
  }
  sides.forEach((side, number) => {
    for (const kind of ["wheel", "pointerdown", "touchstart", "keydown"]) {
      side.addEventListener(kind, (event) => {
        if (kind !== "keydown" || keys.includes(event.key)) {
          scrolled = side;
        }
      }, { passive: true });
    }
    side.addEventListener("scroll", () => {
      if (scrolled === side && isWanted()) {
        follow(number);
      }
    });
  });
};

// What stays of a long common passage at each of its ends when only differences are shown: six words; with whole lines, the
// lines that the differences around it are in.
const shortened = (text, byLine) => {
  const [unit, kept, between] = byLine ? [/[^\n]*\n|[^\n]+/g, 1, "\n[…]\n"] : [/\S+\s*/g, 6, " […] "];
  const units = text.match(unit) || [];
  return units.length > 3 * kept
    ? units.slice(0, kept).join("").trimEnd() + between + units.slice(-kept).join("")
    : text;
};

// Whether the line of a difference begins right before it, and ends right after it: no word is between. Differences begin
// and end with words, so the full stop of a line lies outside.
const ends = (mark) => {
  const [before, after] = [mark.previousSibling, mark.nextSibling].map((one) => (one ? one.textContent : "\n"));
  return [[...before.slice(-1000)].reverse(), after].map((characters) => {
    for (const one of characters) {
      if (one === "\n" || /[\p{L}\p{N}]/u.test(one)) {
        return one === "\n";
      }
    }
    return false;
  });
};

// Whether the lines of a difference differ. A line does not if only the other text has whole lines next to it.
const inLine = (mark) => {
  if (mark.firstChild) {
    return true;
  }
  const twin = document.getElementById(mark.id.replace(/[ab](?=-d\d+$)/, (side) => (side === "a" ? "b" : "a")));
  return !(twin && ends(twin).every(Boolean) && ends(mark).some(Boolean));
};

// The lines of a text that differ, without their newlines.
const changedLines = (text) => {
  const lines = [];
  let start = [text, 0];
  let changed = false;
  const end = (endContainer, endOffset) => {
    if (changed) {
      lines.push(new StaticRange({ startContainer: start[0], startOffset: start[1], endContainer, endOffset }));
    }
  };
  for (const piece of text.childNodes) {
    const differs = piece.nodeName === "MARK" && inLine(piece);
    const node = piece.firstChild || piece; // a difference may have no words here
    const characters = node.data || "";
    changed ||= differs;
    for (let at = characters.indexOf("\n"); at >= 0; at = characters.indexOf("\n", at + 1)) {
      end(node, at);
      start = [node, at + 1];
      changed = differs && at + 1 < characters.length;
    }
  }
  end(text, text.childNodes.length);
  return lines;
};

document.addEventListener("DOMContentLoaded", () => {
  const steps = stepper(document.querySelector(".steps"));
  const [together, only, lines] = ["together", "only", "lines"].map((name) => document.getElementById(name));

  const markLines = () => { // of the texts in sight: browsers need long to paint more
    CSS.highlights?.delete("line");
    if (lines.checked) {
      const marked = new Highlight();
      for (const text of document.querySelectorAll(".panes:not([hidden]) .text")) {
        changedLines(text).forEach((line) => marked.add(line));
      }
      CSS.highlights.set("line", marked);
    }
  };

  const choose = (name) => {
    document.querySelectorAll(".panes").forEach((one) => { one.hidden = one.id !== name; });
    steps.choose(document.getElementById(name));
    markLines();
  };

  document.querySelectorAll("input[name=matching]").forEach((one) => {
    one.addEventListener("change", () => choose(one.value));
  });
  document.querySelectorAll(".show").forEach((one) => {
    one.addEventListener("click", () => {
      if (document.getElementById("literal").hidden) {
        document.querySelector("input[value=literal]").click();
      }
      steps.go(Number(one.dataset.to));
    });
  });
  stepByKeys("j", "k", () => steps);

  document.querySelectorAll(".panes").forEach((one) => scrollTogether(one, () => together.checked));
  const whole = new Map([...document.querySelectorAll(".text .p")].map((one) => [one, one.textContent]));
  const cut = () => whole.forEach((text, one) => {
    one.textContent = only.checked ? shortened(text, lines.checked) : text;
  });
  if (!CSS.highlights) { // an older browser, which cannot mark lines
    lines.checked = false;
    lines.parentNode.hidden = true;
  }
  for (const one of [only, lines]) {
    one.addEventListener("change", () => {
      cut();
      markLines();
    });
  }
  if (only.checked) { // a reloaded page keeps what was chosen
    cut();
  }
  choose(document.querySelector(".panes:not([hidden])").id);
});
