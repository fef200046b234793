// Page of many pairs, each with its own differences. Keys act on the pair that was opened or clicked last.
document.addEventListener("DOMContentLoaded", () => {
  let current = null;

  document.querySelectorAll("details.pair").forEach((pair) => {
    let steps = null;
    pair.addEventListener("toggle", () => {
      if (pair.open && steps === null) {
        steps = stepper(pair.querySelector(".steps"));
        steps.choose(pair.querySelector(".panes"));
      }
      if (pair.open) {
        current = steps;
      } else if (current === steps) {
        current = null;
      }
    });
    pair.addEventListener("click", (event) => {
      if (steps !== null && pair.open) {
        current = steps;
        const fact = event.target.closest(".show");
        if (fact) {
          steps.go(Number(fact.dataset.to));
        }
      }
    });
  });
  stepByKeys(() => current);
});
