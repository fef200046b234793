"use strict";
// The page of a group. Each key presses a button or follows a link of the page.
document.addEventListener("DOMContentLoaded", () => {
  const $ = (query, from = document) => from.querySelector(query);
  const $$ = (query, from = document) => [...from.querySelectorAll(query)];
  const group = $("#group");
  const bar = $(".bar");
  const form = $("#review");
  if (!form) { return; }
  const size = Number(group.dataset.size);
  const ofPage = "paged" in group.dataset ? " of this page" : "";
  const places = JSON.parse($("#places").textContent);
  const opened = performance.now();
  let split = null; // the part of each text, 0 for none; null: nothing is previewed

  // Without a script, everything stands on the page one below the other.
  document.body.classList.remove("plain");
  const list = $(".rows");
  const later = $$("tr[data-later]", list);
  if (later.length) {
    list.classList.add("folded");
    const row = document.createElement("tr");
    row.className = "more";
    const cell = row.insertCell();
    cell.colSpan = $("thead tr", list).cells.length;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Show ${later.length} more`;
    button.addEventListener("click", () => { list.classList.remove("folded"); row.remove(); fit(); place(); });
    cell.append(button);
    $("tbody", list).append(row);
  }

  // A row that is not the current one has one line of values: those without room are left out, and counted.
  const fit = () => {
    for (const one of $$(".over", list)) { one.classList.remove("over"); }
    const over = $$(".variants", list).flatMap((values) => {
      const [first, ...others] = values.children;
      return others.filter((one) => one.offsetTop > first.offsetTop);
    });
    for (const one of over) { one.classList.add("over"); }
    for (const one of $$(".spare", list)) { one.classList.toggle("needed", Boolean($(".over", one.parentElement))); }
  };

  const rows = () => $$("tr[data-place]", list).filter((one) => one.offsetParent !== null);
  const current = () => $("tr.now", list);
  const scrolls = (pane) => getComputedStyle(pane).overflowY === "auto" && document.documentElement.scrollHeight <= innerHeight + 1;

  // Readings stand at the height of their place. The current one stands exactly there: those before it make room as far
  // as there is room, those after it follow.
  const notes = $(".notes");
  const place = () => {
    if (!notes || getComputedStyle(notes).display === "none") { return; }
    notes.classList.remove("flow");
    const top = notes.getBoundingClientRect().top;
    const items = $$(":scope > li", notes);
    const heights = items.map((item) => item.offsetHeight + 3);
    const wanted = items.map((item) => ($(`mark[data-place="${item.dataset.place}"]`)?.getClientRects()[0]?.top ?? top) - top);
    const at = [];
    items.forEach((_, number) => { at.push(Math.max(wanted[number], number ? at[number - 1] + heights[number - 1] : 0)); });
    const now = items.findIndex((item) => item.classList.contains("now"));
    if (now > 0) {
      at[now] = wanted[now];
      for (let number = now - 1; number >= 0; number -= 1) { at[number] = Math.min(at[number], at[number + 1] - heights[number]); }
      if (at[0] < 0) {
        for (let number = 0, free = 0; number <= now; number += 1) { at[number] = Math.max(at[number], free); free = at[number] + heights[number]; }
      }
      for (let number = now + 1; number < items.length; number += 1) { at[number] = Math.max(wanted[number], at[number - 1] + heights[number - 1]); }
    }
    items.forEach((item, number) => { item.style.top = `${at[number]}px`; });
    notes.style.minHeight = items.length ? `${at[at.length - 1] + heights[heights.length - 1] + 20}px` : "";
  };

  // The documents, sorted by what they read at a place.
  const rail = (number) => {
    const body = $(".rail tbody");
    const found = places[number];
    if (!body || !found) { return; }
    const listed = new Map($$("tr", body).map((row) => [Number(row.dataset.text), row]));
    found.values.forEach((one, at) => one.texts.forEach((text, first) => {
      const row = listed.get(text);
      $(".reads", row).textContent = one.short;
      $(".reads", row).title = one.text;
      row.classList.toggle("edge", at > 0 && first === 0);
      body.append(row);
    }));
    $(".rail .by").textContent = `by ${found.kind} at place ${number}`;
  };

  const go = (row, scroll = true) => {
    if (!row) { return; }
    const number = row.dataset.place;
    for (const one of $$(".now")) { one.classList.remove("now"); one.removeAttribute("aria-current"); }
    row.classList.add("now");
    row.setAttribute("aria-current", "true");
    if (scrolls(list)) {
      const above = row.offsetTop - $("thead", list).offsetHeight;
      const below = row.offsetTop + row.offsetHeight - list.clientHeight;
      if (list.scrollTop > above || below > above) { list.scrollTop = above; } else if (list.scrollTop < below) { list.scrollTop = below; }
    } else if (scroll) { row.scrollIntoView({ block: "nearest" }); }
    for (const one of $$(`mark[data-place="${number}"], .notes > li[data-place="${number}"]`)) { one.classList.add("now"); }
    place();
    const mark = $(`mark[data-place="${number}"]`);
    const pane = $(".edition");
    if (mark && scrolls(pane)) {
      pane.scrollTop += mark.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight * 0.4;
    }
    rail(number);
    if ($("#by")) { $("#by").textContent = row.dataset.kind; }
  };

  const boxes = () => $$("input[data-choose]");
  const chosen = () => boxes().filter((one) => one.checked).map((one) => Number(one.dataset.choose));
  const choice = () => {
    const some = chosen();
    const button = $("#chosen");
    if (button) {
      button.classList.toggle("some", some.length > 0);
      $("span", button).textContent = some.length === 1 ? "1 chosen differs" : `${some.length} chosen differ`;
    }
    const kept = $("#kept");
    if (kept) {
      kept.textContent = some.length > 1 ? "one" : letter(some[0] ?? 0);
      kept.closest("button").disabled = some.length > 1;
    }
  };
  const letter = (text) => $(`[data-text="${text}"] .letter`)?.textContent ?? "A";

  const chips = () => {
    for (const one of $$(".chip[data-part]")) { one.textContent = (split && split[Number(one.dataset.part)]) || ""; }
  };
  const written = (number) => number.toLocaleString("en");
  const preview = () => {
    const sizes = new Map();
    let all = 0;
    for (const input of $$("[data-part-of]", form)) {
      const part = split[Number(input.dataset.partOf)];
      all += 1;
      if (part) { sizes.set(part, (sizes.get(part) || 0) + 1); }
    }
    const counts = [...sizes.values()].sort((one, other) => other - one);
    const assigned = counts.reduce((sum, one) => sum + one, 0);
    const same = counts.reduce((sum, one) => sum + one * (one - 1) / 2, 0);
    const different = assigned * (assigned - 1) / 2 - same;
    const title = document.createElement("b");
    title.textContent = counts.length === 1 && assigned === all ? `All ${written(all)}${ofPage} are the same`
      : same === 0 && assigned === all ? `All ${written(all)}${ofPage} differ from each other`
        : `${written(counts.length)} ${counts.length === 1 ? "part" : "parts"} (${counts.slice(0, 8).join(", ")}${counts.length > 8 ? ", ..." : ""})`;
    const pairs = [same && `${written(same)} ${same === 1 ? "pair" : "pairs"} same`, different && `${written(different)} different`];
    $("#what").replaceChildren(title, `: ${pairs.filter(Boolean).join(", ") || "nothing to store"}`, assigned < all ? `; ${written(all - assigned)} without a part stay undecided` : "");
    $("#store").disabled = assigned < 2;
    $(".decide", bar).hidden = true;
    $(".preview", bar).hidden = false;
    chips();
    $("#store").focus();
  };
  const cancel = () => {
    split = null;
    chips();
    for (const one of boxes()) { one.checked = false; }
    for (const one of $$(".variant[aria-pressed=true]")) { one.setAttribute("aria-pressed", "false"); }
    $(".decide", bar).hidden = false;
    $(".preview", bar).hidden = true;
    $(".note", bar)?.classList.remove("open");
    choice();
    document.activeElement?.blur?.();
  };
  const store = () => {
    const how = document.createElement("input");
    how.type = "hidden";
    how.name = "verdict";
    how.value = "split";
    form.append(how);
    for (const input of $$("[data-part-of]", form)) { input.value = split[Number(input.dataset.partOf)] || ""; }
    form.elements.confirmed.value = "true";
    form.submit();
  };

  const texts = (part) => Array.from({ length: size }, (_, at) => part(at));
  // Each reading of the current place is a part.
  const byReading = () => {
    const found = places[current()?.dataset.place];
    if (!found || size < 3) { return; }
    const parts = texts(() => 0);
    found.values.forEach((one, at) => one.texts.forEach((text) => { parts[text] = at + 1; }));
    split = parts;
    preview();
  };
  const documents = () => $$($(".rail") ? ".rail [data-text]" : "thead [data-text]");
  const at = () => Number($(".at[data-text]").dataset.text);
  const step = (by) => {
    const all = documents();
    const now = all.findIndex((one) => one.classList.contains("at"));
    const next = all[(now + by + all.length) % all.length];
    all[now].classList.remove("at");
    next.classList.add("at");
    next.scrollIntoView({ block: "nearest" });
  };
  // A document that was put into no part stays undecided.
  const assign = (part) => {
    if (size < 3) { return; }
    const some = chosen();
    split = split || texts(() => 0);
    for (const one of some.length ? some : [at()]) { split[one] = part; }
    for (const one of boxes()) { one.checked = false; }
    preview();
    if (!some.length) { step(1); }
  };
  const move = (by) => {
    const all = rows();
    go(all[Math.min(Math.max(all.indexOf(current()) + by, 0), all.length - 1)]);
  };

  const actions = {
    x: byReading,
    j: () => move(1),
    k: () => move(-1),
    "]": () => step(1),
    "[": () => step(-1),
    v: () => { if ($(".collation")) { document.body.classList.toggle("table"); place(); } },
    c: () => { $(`[data-compare="${chosen()[0] || at() || 1}"]`)?.click(); },
    t: () => { $(".note", bar)?.classList.add("open"); $(".note input", bar)?.focus(); },
    "?": () => $("dialog").showModal(),
    Escape: cancel,
    Enter: () => { if (split && !$("#store").disabled) { store(); } },
  };

  // A decision about more than two texts is previewed in place. One about two is stored at once, but not by a key that
  // was meant for the group before.
  form.addEventListener("submit", (event) => {
    if (split) { event.preventDefault(); actions.Enter(); return; } // Enter in the field of the note
    const how = event.submitter?.value;
    if (["same", "different", "apart"].includes(how) && size > 2) {
      event.preventDefault();
      const some = chosen();
      split = how === "same" ? texts(() => 1) : how === "different" && some.length ? texts((at) => some.includes(at) ? 2 : 1) : texts((at) => at + 1);
      preview();
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open) { return; }
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape") { event.target.blur(); $(".note", bar)?.classList.remove("open"); }
      return;
    }
    if (event.repeat && !["j", "k", "[", "]"].includes(event.key)) { return; }
    if (event.key === "Enter" && event.target.closest("button, a, summary, label")) { return; }
    if (["s", "d", "e", "u"].includes(event.key) && performance.now() - opened < 250) { return; }
    if (/^[0-9]$/.test(event.key)) {
      event.preventDefault();
      assign(Number(event.key));
    } else if (Object.hasOwn(actions, event.key)) {
      event.preventDefault();
      actions[event.key]();
    } else {
      const target = $$(`[data-key="${CSS.escape(event.key)}"]`).find((one) => !one.closest("[hidden]"));
      if (target) { event.preventDefault(); target.click(); }
    }
  });

  document.addEventListener("change", choice);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[type=button][data-key]");
    if (button && Object.hasOwn(actions, button.dataset.key)) { actions[button.dataset.key](); return; }
    const sort = event.target.closest(".sort");
    if (sort) { sorted(sort.closest("th")); return; }
    const variant = event.target.closest(".variant");
    if (variant) {
      const on = variant.getAttribute("aria-pressed") !== "true";
      variant.setAttribute("aria-pressed", String(on));
      const those = variant.dataset.texts.split(" ");
      for (const one of boxes()) { if (those.includes(one.dataset.choose)) { one.checked = on; } }
      choice();
      return;
    }
    if (event.target.closest("#more")) { $("#more").setAttribute("aria-expanded", String(bar.classList.toggle("open"))); return; }
    if (event.target.closest("a, input, summary")) { return; }
    const mark = event.target.closest("mark[data-place]");
    const row = mark ? $$("tr[data-place]", list).find((one) => one.dataset.place === mark.dataset.place || one.dataset.also.split(" ").includes(mark.dataset.place)) : event.target.closest("tr[data-place]");
    if (row) { go(row, !mark); }
  });

  // Sort the table by a column, as people do: $900 before $1,200.
  const collator = new Intl.Collator("en", { numeric: true });
  const sorted = (head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const one of $$("th[aria-sort]")) { one.removeAttribute("aria-sort"); }
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = $(".collation tbody");
    const words = (cell) => ($(".name", cell) ?? cell).textContent;
    const key = (row) => words(row.cells[head.cellIndex]).replace(/(\d),(?=\d{3}\b)/g, "$1").replace(/^as A$/, "");
    const [first, ...others] = [...body.rows];
    others.sort((a, b) => (down ? -1 : 1) * collator.compare(key(a), key(b)));
    body.replaceChildren(first, ...others);
  };

  addEventListener("toggle", place, true);
  addEventListener("resize", () => { fit(); place(); });
  document.fonts?.ready.then(() => { fit(); place(); });
  choice();
  fit();
  go(current(), false);
  documents()[0].classList.add("at");
  place();
});
