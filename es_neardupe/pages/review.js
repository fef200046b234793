"use strict";
// Keys: each presses a button or follows a link of the page, so that everything also works without them.
const opened = performance.now();
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) {
    return;
  }
  if (field) {
    if (event.key === "Escape") {
      field.blur();
    }
    return;
  }
  if (["s", "d", "e", "E", "u"].includes(event.key) && performance.now() - opened < 250) {
    return; // meant for the page before
  }
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (target) {
    event.preventDefault();
    target.click();
  }
});
