// Page of many pairs: filter, order and search, and in each pair its own differences. Keys act on the pair that was opened
// or clicked last.
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

  const list = document.getElementById("rows");
  const rows = [...list.children];
  const field = (id) => document.getElementById(id);
  if (!rows.length) {
    return;
  }

  // The words of each row, its texts included. They are collected by the first search.
  let words = null;
  const matches = (query) => {
    words = words || new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    return (row) => query.every((word) => words.get(row).includes(word));
  };

  const filter = () => {
    const query = field("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = query.length ? matches(query) : () => true;
    const low = Number(field("from").value || -Infinity);
    const high = Number(field("to").value || Infinity);
    const kind = field("kind").value;
    let count = 0;
    for (const row of rows) {
      const similarity = Number(row.dataset.similarity);
      const of = !kind || (kind === "facts" ? "facts" in row.dataset : row.dataset.kind === kind);
      row.hidden = !(of && low <= similarity && similarity <= high && found(row));
      count += !row.hidden;
    }
    const all = rows.length.toLocaleString("en");
    field("shown").textContent = count === rows.length
      ? `${all} ${count === 1 ? "row" : "rows"}`
      : `${count.toLocaleString("en")} of ${all} rows`;
  };

  const title = (row) => row.querySelector(".title, .name").textContent;
  const orders = {
    most: () => rows,
    least: () => [...rows].reverse(),
    title: () => [...rows].sort((one, two) => title(one).localeCompare(title(two))),
  };

  for (const id of ["search", "from", "to"]) {
    field(id).addEventListener("input", filter);
  }
  field("kind").addEventListener("change", filter);
  field("order").addEventListener("change", () => list.append(...orders[field("order").value]()));
  field("all").addEventListener("click", () => {
    for (const id of ["search", "from", "to", "kind"]) {
      field(id).value = "";
    }
    filter();
  });
  filter(); // a reloaded page keeps what was chosen
  list.append(...orders[field("order").value]());

  const step = (by) => {
    const visible = [...list.children].filter((row) => !row.hidden);
    const at = visible.indexOf(document.activeElement.closest(".pair"));
    const next = visible[at < 0 ? 0 : at + by];
    if (next) {
      (next.matches("details") ? next.firstElementChild : next).focus();
    }
  };
  document.addEventListener("keydown", (event) => {
    if (isTyping(event)) {
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      field("search").focus();
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    }
  });
});
