// Page of a comparison: choice of the matching.
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
  choose(document.querySelector(".panes:not([hidden])").id);
});
