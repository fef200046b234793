// Page of many pairs: filter, order and search, and in each pair its own differences. Keys act on the pair that was opened
// or clicked last. Of many rows, some are shown at a time; the others are elements outside the document.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("rows");
  const more = document.getElementById("more");
  const rows = [...list.children, ...(more ? more.content.children : [])];
  let current = null;

  rows.filter((row) => row.matches("details")).forEach((pair) => {
    let steps = null;
    pair.addEventListener("toggle", () => {
      if (pair.open && steps === null) {
        steps = stepper(pair.querySelector(".steps"));
        steps.choose(pair.querySelector(".panes"));
      }
      if (pair.open) {
        current = { pair, steps };
      } else if (current && current.pair === pair) {
        current = null;
      }
    });
    pair.addEventListener("click", (event) => {
      if (steps !== null && pair.open) {
        current = { pair, steps };
        const fact = event.target.closest(".show");
        if (fact) {
          steps.go(Number(fact.dataset.to));
        }
      }
    });
  });
  stepByKeys("n", "p", () => (current && current.pair.isConnected ? current.steps : null));

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

  const size = Number(list.dataset.size);
  let ordered = rows;
  let found = rows;
  let start = 0;

  const show = (first) => {
    start = first;
    const end = Math.min(start + size, found.length);
    list.replaceChildren(...found.slice(start, end));
    if (more) {
      const total = found.length.toLocaleString("en");
      field("place").textContent = found.length
        ? `Rows ${(start + 1).toLocaleString("en")} to ${end.toLocaleString("en")} of ${total}`
        : "No rows";
      field("previous-rows").disabled = start === 0;
      field("next-rows").disabled = end === found.length;
    }
  };

  const filter = () => {
    const query = field("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = query.length ? matches(query) : () => true;
    const low = Number(field("from").value || -Infinity);
    const high = Number(field("to").value || Infinity);
    const kind = field("kind").value;
    found = ordered.filter((row) => {
      const similarity = Number(row.dataset.similarity);
      const of = !kind || (kind === "facts" ? "facts" in row.dataset : row.dataset.kind === kind);
      return of && low <= similarity && similarity <= high && matching(row);
    });
    show(0);
    const count = found.length;
    const all = rows.length.toLocaleString("en");
    field("shown").textContent = count === rows.length
      ? `${all} ${count === 1 ? "row" : "rows"}`
      : `${count.toLocaleString("en")} of ${all} rows`;
  };

  const titles = new Map();
  const title = (row) => {
    if (!titles.has(row)) {
      titles.set(row, row.querySelector(".title, .name").textContent);
    }
    return titles.get(row);
  };
  const orders = {
    most: () => rows,
    least: () => [...rows].reverse(),
    title: () => [...rows].sort((one, two) => title(one).localeCompare(title(two))),
  };
  const order = () => {
    ordered = orders[field("order").value]();
    filter();
  };

  for (const id of ["search", "from", "to"]) {
    field(id).addEventListener("input", filter);
  }
  field("kind").addEventListener("change", filter);
  field("order").addEventListener("change", order);
  field("all").addEventListener("click", () => {
    for (const id of ["search", "from", "to", "kind"]) {
      field(id).value = "";
    }
    filter();
  });
  order(); // a reloaded page keeps what was chosen

  const reveal = (place) => {
    if (place < start || place >= start + size) {
      show(Math.floor(place / size) * size);
    }
  };
  const linked = found.findIndex((row) => `#${row.id}` === location.hash);
  if (linked >= size) {
    reveal(linked);
    found[linked].scrollIntoView();
  }
  const turn = (by) => {
    show(start + by * size);
    document.getElementById("pairs").scrollIntoView();
  };
  if (more) {
    field("previous-rows").addEventListener("click", () => turn(-1));
    field("next-rows").addEventListener("click", () => turn(1));
  }

  const step = (by) => {
    const at = found.indexOf(document.activeElement.closest(".pair"));
    const place = at < 0 ? start : at + by;
    const next = found[place];
    if (next) {
      reveal(place);
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
