"use strict";
// Keys for reviewing: each presses a button or follows a link of the page, so that everything also works without them.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("review");
  const rows = form ? [...form.querySelectorAll("tbody tr")] : [];
  let current = -1;

  const move = (place) => {
    if (rows.length) {
      current = Math.min(Math.max(place, 0), rows.length - 1);
      rows.forEach((row, number) => { row.classList.toggle("current", number === current); });
      rows[current].focus();
      rows[current].scrollIntoView({ block: "nearest" });
    }
  };

  const box = (row) => row && row.querySelector("input[type=checkbox]");
  const boxes = () => rows.map(box).filter((one) => one && !one.closest(".reference"));

  // Without a choice, a decision is about the current document, or about the only one besides the reference.
  const choose = (event) => {
    const decides = ["same", "different"].includes(event.submitter?.value);
    const others = boxes();
    const possible = decides ? others : rows.map(box).filter(Boolean);
    if (possible.some((one) => one.checked)) {
      return;
    }
    const one = possible.includes(box(rows[current])) ? box(rows[current]) : decides && others.length === 1 && others[0];
    if (one) {
      one.checked = true;
    } else if (decides) {
      event.preventDefault();
      document.getElementById("choose-first").hidden = false;
    }
  };

  const actions = {
    j: () => move(current + 1),
    k: () => move(current - 1),
    x: () => { if (box(rows[current])) { box(rows[current]).checked = !box(rows[current]).checked; } },
    a: () => {
      const all = boxes().every((one) => one.checked);
      boxes().forEach((one) => { one.checked = !all; });
    },
    c: () => { const link = rows[current] && rows[current].querySelector("[data-each=c]"); if (link) { link.click(); } },
  };

  form?.addEventListener("submit", choose);

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (field) {
      if (event.key === "Escape") {
        field.blur();
      }
      return;
    }
    if (rows.length && actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
      return;
    }
    const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (target) {
      event.preventDefault();
      target.click();
    }
  });
});
