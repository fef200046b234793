// The page of a comparison: the differences one after the other, and the choice of the matching.
document.addEventListener("DOMContentLoaded", () => {
  const counter = document.getElementById("counter");
  const buttons = [document.getElementById("previous"), document.getElementById("next")];
  let panes = document.querySelector(".panes:not([hidden])");
  let differences = [];
  let current = -1;

  const sides = () => panes.querySelectorAll(".text");

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

  document.addEventListener("keydown", (event) => {
    if ((event.key === "n" || event.key === "p") && !(event.ctrlKey || event.metaKey || event.altKey)) {
      step(event.key === "n" ? 1 : -1);
    }
  });

  choose(panes.id);
});
