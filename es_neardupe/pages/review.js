"use strict";
// Keys: each presses a button or follows a link of the page, so that everything also works without them.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) {
    return;
  }
  if (field) {
    if (event.key === "Escape") {
      field.blur();
    }
    return;
  }
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (target) {
    event.preventDefault();
    target.click();
  }
});
