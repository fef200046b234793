"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const counter = document.getElementById("counter");
  const buttons = [document.getElementById("previous"), document.getElementById("next")];
  let panes = document.querySelector(".panes:not([hidden])");
  let differences = [];
  let current = -1;

  const sides = () => panes.querySelectorAll(".text");
  const other = (node) => [...sides()].find((side) => !side.contains(node));
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
      passages(panes, number).forEach((one) => one.classList.add("hot"));
    }
  };

  const jump = (node) => {
    const number = node.dataset.n || numbers(node)[0];
    const side = other(node);
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

  const tell = () => {
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
    for (const side of sides()) {
      const marks = side.querySelectorAll(`.d[data-d="${differences[current]}"]`);
      marks.forEach((one) => one.classList.add("now"));
      if (marks.length) {
        center(side, marks[0]);
      }
    }
    panes.scrollIntoView({ block: "nearest" });
    tell();
  };

  const choose = (name) => {
    document.querySelectorAll(".panes").forEach((one) => { one.hidden = one.id !== name; });
    panes = document.getElementById(name);
    const found = new Set([...panes.querySelectorAll(".d")].map((one) => Number(one.dataset.d)));
    differences = [...found].sort((one, two) => one - two);
    current = -1;
    ["now", "hot", "twin"].forEach(clear);
    tell();
  };

  const step = (by) => show(current < 0 && by < 0 ? -1 : current + by);

  document.querySelectorAll("input[name=matching]").forEach((one) => {
    one.addEventListener("change", () => choose(one.value));
  });
  buttons[0].addEventListener("click", () => step(-1));
  buttons[1].addEventListener("click", () => step(1));
  document.querySelectorAll(".show").forEach((one) => {
    one.addEventListener("click", () => {
      if (panes.id !== "literal") {
        document.querySelector("input[value=literal]").click();
      }
      show(differences.indexOf(Number(one.dataset.to)));
    });
  });

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
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const passage = event.target.closest && event.target.closest(".p");
    if (passage && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      jump(passage);
    } else if (event.key === "n" || event.key === "p") {
      step(event.key === "n" ? 1 : -1);
    }
  });

  choose(panes.id);
});
