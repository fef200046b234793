"use strict";
// Texts side by side: a passage and its twin. A page may have many such pairs of panes.
const passages = (root, number) => root.querySelectorAll(`.p[data-k~="${number}"]`);
const clear = (name) => document.querySelectorAll(`.${name}`).forEach((one) => one.classList.remove(name));

// The pane scrolls, not the page: the reader's place on the page stays.
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
    return; // beyond what the page shows
  }
  clear("twin");
  twin.forEach((one) => one.classList.add("twin"));
  const first = document.getElementById(`${side.id}-p${number}`) || twin[0];
  first.focus({ preventScroll: true });
  heat(first);
  center(side, first);
  side.scrollIntoView({ block: "nearest" });
};

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".text").forEach((side) => {
    side.addEventListener("click", (event) => {
      const passage = event.target.closest(".p");
      if (passage && getSelection().isCollapsed) {
        jump(passage);
      }
    });
    side.addEventListener("mouseover", (event) => heat(event.target.closest(".p")));
    side.addEventListener("mouseleave", () => clear("hot"));
    side.addEventListener("focusin", (event) => heat(event.target.closest(".p")));
  });

  document.addEventListener("keydown", (event) => {
    const passage = event.target.closest && event.target.closest(".panes .p");
    if (passage && (event.key === "Enter" || event.key === " ") && !(event.ctrlKey || event.metaKey || event.altKey)) {
      event.preventDefault();
      jump(passage);
    }
  });
});
