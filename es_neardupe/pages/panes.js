"use strict";
// Two texts side by side: jump from a passage to the same one in the other text, and from difference to difference.
// A page may have many such pairs of panes.
const passages = (root, number) => root.querySelectorAll(`.p[data-k~="${number}"]`);
const clear = (name) => document.querySelectorAll(`.${name}`).forEach((one) => one.classList.remove(name));

// Scrolls the pane, not the page, so that the reader's position on the page does not change.
const center = (side, node) => {
  const place = node.getBoundingClientRect();
  const frame = side.getBoundingClientRect();
  const height = Math.min(place.height, frame.height * 0.6);
  side.scrollTop += place.top - frame.top - (frame.height - height) / 2;
};

const numbers = (node) => (node && node.dataset.k ? node.dataset.k.split(" ") : []);

const heat = (node) => {
  clear("hot");
  for (const number of numbers(node)) {
    passages(node.closest(".panes"), number).forEach((one) => one.classList.add("hot"));
  }
};

const jump = (node) => {
  const number = node.dataset.n || numbers(node)[0];
  const side = [...node.closest(".panes").querySelectorAll(".text")].find((one) => !one.contains(node));
  const twin = passages(side, number);
  if (!twin.length) {
    return; // it is in the part of the text that is not shown
  }
  clear("twin");
  twin.forEach((one) => one.classList.add("twin"));
  const first = document.getElementById(`${side.id}-p${number}`) || twin[0];
  first.focus({ preventScroll: true });
  heat(first);
  center(side, first);
  side.scrollIntoView({ block: "nearest" });
};

// Buttons for the previous and the next difference, the counter between them, and the panes that they act on.
const stepper = (bar) => {
  const buttons = bar.querySelectorAll("button");
  const counter = bar.querySelector("output");
  let panes = null;
  let differences = [];
  let current = -1;

  const update = () => {
    const total = differences.length;
    counter.textContent = current < 0
      ? `${total} difference${total === 1 ? "" : "s"}`
      : `Difference ${current + 1} of ${total}`;
    buttons.forEach((one) => { one.disabled = total === 0; });
  };

  const show = (place) => {
    if (!differences.length) {
      return;
    }
    current = (place + differences.length) % differences.length;
    clear("now");
    for (const side of panes.querySelectorAll(".text")) {
      const marks = side.querySelectorAll(`.d[data-d="${differences[current]}"]`);
      marks.forEach((one) => one.classList.add("now"));
      if (marks.length) {
        center(side, marks[0]);
      }
    }
    panes.scrollIntoView({ block: "nearest" });
    update();
  };

  const step = (by) => show(current < 0 && by < 0 ? -1 : current + by);

  const choose = (chosen) => {
    panes = chosen;
    const found = new Set([...panes.querySelectorAll(".d")].map((one) => Number(one.dataset.d)));
    differences = [...found].sort((one, two) => one - two);
    current = -1;
    ["now", "hot", "twin"].forEach(clear);
    update();
  };

  buttons[0].addEventListener("click", () => step(-1));
  buttons[1].addEventListener("click", () => step(1));
  return { choose, step, go: (number) => show(differences.indexOf(number)) };
};

// Whether a key is not for the page: it is typed into a field, or a key of the browser.
const isTyping = (event) => event.ctrlKey || event.metaKey || event.altKey
  || event.target.matches("select, input:not([type=radio], [type=checkbox])");

// Two keys go to the next and the previous difference of the stepper that ``current`` returns, if any.
const stepByKeys = (next, previous, current) => {
  document.addEventListener("keydown", (event) => {
    const by = { [next]: 1, [previous]: -1 }[event.key];
    const steps = by && !isTyping(event) && current();
    if (steps) {
      steps.step(by);
    }
  });
};

document.addEventListener("DOMContentLoaded", () => {
  document.addEventListener("click", (event) => {
    const passage = event.target.closest(".text .p");
    if (passage && getSelection().isCollapsed) {
      jump(passage);
    }
  });
  for (const kind of ["mouseover", "focusin"]) {
    document.addEventListener(kind, (event) => heat(event.target.closest(".text .p")));
  }

  document.addEventListener("keydown", (event) => {
    const passage = event.target.closest && event.target.closest(".panes .p");
    if (passage && (event.key === "Enter" || event.key === " ") && !(event.ctrlKey || event.metaKey || event.altKey)) {
      event.preventDefault();
      jump(passage);
    }
  });
});
