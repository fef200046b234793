// Page of a comparison: choice of the matching, scrolling of both texts together, differences only.

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

// Words of a long common passage that stay at its ends when only differences are shown.
const WORDS_KEPT = 6;
const shortened = (text) => {
  const words = text.match(/\S+\s*/g) || [];
  return words.length > 3 * WORDS_KEPT
    ? `${words.slice(0, WORDS_KEPT).join("").trimEnd()} […] ${words.slice(-WORDS_KEPT).join("")}`
    : text;
};

document.addEventListener("DOMContentLoaded", () => {
  const steps = stepper(document.querySelector(".steps"));

  const choose = (name) => {
    document.querySelectorAll(".panes").forEach((one) => { one.hidden = one.id !== name; });
    steps.choose(document.getElementById(name));
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
  stepByKeys(() => steps);

  const together = document.getElementById("together");
  document.querySelectorAll(".panes").forEach((one) => scrollTogether(one, () => together.checked));
  const whole = new Map([...document.querySelectorAll(".text .p")].map((one) => [one, one.textContent]));
  const only = document.getElementById("only");
  const cut = () => whole.forEach((text, one) => { one.textContent = only.checked ? shortened(text) : text; });
  only.addEventListener("change", cut);
  if (only.checked) { // a reloaded page keeps what was chosen
    cut();
  }
  choose(document.querySelector(".panes:not([hidden])").id);
});
