"use strict";
// What is typed and what is answered comes into the page as text nodes alone, never as markup.
const about = JSON.parse(document.getElementById("about").textContent);
const [form, status, result] = ["form", "status", "result"].map((id) => document.getElementById(id));
const PAUSE = 250; // milliseconds without a key before the server is asked
const CELLS = 2400, COLUMNS = 48; // beyond that a matrix is too large to be looked at

const make = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const tint = (element, share, most = 75) => {
  const percent = Math.round(most * Math.min(1, Math.max(0, share)));
  element.style.background = `color-mix(in srgb, var(--accent) ${percent}%, transparent)`;
};

// The form ---------------------------------------------------------------------------------------

const boxes = about.fields.map((field, number) => {
  const box = make("textarea", {
    rows: field.lines, maxLength: field.most, spellcheck: false, value: about.example[number] || "",
  });
  box.style.minHeight = `${1.5 * field.lines + 1.3}em`;
  form.append(make("label", {}, field.name, box));
  return box;
});
const sliders = about.options.map((option) => {
  const value = make("output", {}, String(option.value));
  const slider = make("input", { type: "range", name: option.name });
  Object.assign(slider, { min: option.least, max: option.most, step: option.step });
  slider.value = option.value; // after its bounds, or it is cut to others
  slider.addEventListener("input", () => { value.textContent = slider.value; });
  return [make("label", {}, option.label, value, slider), slider];
});
if (sliders.length) form.append(make("div", { className: "options" }, ...sliders.map(([label]) => label)));
form.addEventListener("submit", (event) => event.preventDefault());

// Asking -----------------------------------------------------------------------------------------

let waiting = 0, asking = null;

const say = (text, wrong = false) => {
  status.textContent = text;
  status.classList.toggle("wrong", wrong);
};
const missing = () => about.fields.filter((_, number) => !boxes[number].value.trim()).map((field) => field.name);

const ask = async () => {
  if (asking) asking.abort(); // what it asks about is no longer what is typed
  asking = null;
  if (missing().length) {
    result.replaceChildren();
    result.removeAttribute("aria-busy");
    say(`Type a ${missing().join(" and a ")}.`);
    return;
  }
  const mine = (asking = new AbortController());
  const slow = setTimeout(() => result.setAttribute("aria-busy", "true"), 300);
  try {
    const answer = await fetch("/answer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        texts: boxes.map((box) => box.value),
        options: Object.fromEntries(sliders.map(([, slider]) => [slider.name, Number(slider.value)])),
      }),
      signal: mine.signal,
    });
    const found = await answer.json();
    if (mine !== asking) return;
    if (!answer.ok) throw new Error(found.error);
    result.replaceChildren(...found.views.map(draw));
    say(found.views.length ? `${found.milliseconds} ms` : "There is nothing in this text to read.");
  } catch (error) {
    if (mine !== asking || error.name === "AbortError") return;
    say(error instanceof TypeError ? "The server does not answer. Has it been stopped?" : error.message, true);
  } finally {
    clearTimeout(slow);
    if (mine === asking) result.removeAttribute("aria-busy");
  }
};
const later = () => {
  clearTimeout(waiting);
  waiting = setTimeout(ask, PAUSE);
};
form.addEventListener("input", later);

// Drawing: a function for every kind of view -------------------------------------------------------

const chosen = {}; // row and head by the title of a view, kept from answer to answer

const pointed = (elements, tips, note) => {
  const usual = note.textContent;
  elements.forEach((element, number) => {
    if (!tips[number]) return;
    element.title = tips[number];
    for (const on of ["mouseenter", "click"]) {
      element.addEventListener(on, () => { note.textContent = `${element.textContent}: ${tips[number]}`; });
    }
    element.addEventListener("mouseleave", () => { note.textContent = usual; });
  });
};
const spaced = (elements) => elements.flatMap((element) => [element, " "]);

const kinds = {
  bars(view) {
    const best = Math.max(...view.bars.map((bar) => bar.share));
    const cells = view.bars.flatMap((bar) => {
      const more = bar.share === best ? " best" : "";
      const inner = make("span", {});
      inner.style.width = `${100 * Math.min(1, bar.share)}%`;
      return [
        make("span", { className: `name${more}` }, bar.name),
        make("span", { className: `bar${more}` }, inner),
        make("span", { className: "shown" }, bar.shown),
      ];
    });
    return [make("div", { className: "bars" }, ...cells)];
  },

  shades(view) {
    const note = make("p", { className: "note" }, view.note);
    const words = view.words.map((word) => make("span", {}, word.text));
    words.forEach((word, number) => tint(word, view.words[number].share));
    pointed(words, view.words.map((word) => word.tip), note);
    return [make("p", { className: "words" }, ...spaced(words)), note];
  },

  marks(view) {
    const parts = view.parts.map((part) => {
      if (part.rank < 0) return part.text;
      const mark = make("mark", {}, part.text);
      mark.style.setProperty("--own", `var(--rank-${part.rank % 5})`);
      if (part.label) mark.append(make("small", {}, part.label));
      return mark;
    });
    return [make("p", { className: view.large ? "text large" : "text" }, ...parts)];
  },

  attention(view) {
    const state = (chosen[view.title] ??= { row: 0, head: -1 });
    const heads = view.weights.length;
    const row = () => Math.min(state.row, view.rows.length - 1);
    const weight = (r, c) => state.head >= 0 && state.head < heads ? view.weights[state.head][r][c]
      : view.weights.reduce((sum, head) => sum + head[r][c], 0) / heads;
    const note = make("p", { className: "note" }, view.note);
    const buttons = heads < 2 ? [] : [-1, ...Array(heads).keys()].map((head) => {
      const button = make("button", { type: "button" }, head < 0 ? "all heads" : `head ${head + 1}`);
      button.addEventListener("click", () => { state.head = head; show(); });
      return button;
    });
    const large = view.columns.length > COLUMNS || view.rows.length * view.columns.length > CELLS;
    const [picture, show] = (large ? chosenRow : matrix)(view, state, row, weight);
    const press = () => buttons.forEach((button, number) =>
      button.setAttribute("aria-pressed", String(number - 1 === (state.head < heads ? state.head : -1))));
    buttons.forEach((button) => button.addEventListener("click", press));
    press();
    show();
    const choice = buttons.length ? [make("div", { className: "heads" }, ...buttons)] : [];
    return [...choice, ...picture, note];
  },
};

// A table with a cell for every pair of words.
function matrix(view, state, row, weight) {
  const cells = view.rows.map(() => view.columns.map(() => make("td", {})));
  const head = make("tr", {}, make("td", {}), ...view.columns.map((word) =>
    make("th", { scope: "col" }, make("span", {}, word))));
  const body = view.rows.map((word, r) => make("tr", {}, make("th", { scope: "row", title: word }, word), ...cells[r]));
  const table = make("table", { className: "matrix" }, make("thead", {}, head), make("tbody", {}, ...body));
  const show = () => cells.forEach((line, r) => line.forEach((cell, c) => {
    tint(cell, weight(r, c), 100);
    cell.title = `${view.rows[r]} → ${view.columns[c]}: ${weight(r, c).toFixed(3)}`;
  }));
  return [[make("div", { className: "wide", tabIndex: 0 }, table)], show];
}

// Two texts: one to choose a word from, the other shaded by it.
function chosenRow(view, state, row, weight) {
  const words = view.rows.map((word) => make("span", { className: "choice", tabIndex: 0 }, word));
  const seen = view.columns.map((word) => make("span", {}, word));
  const show = () => {
    words.forEach((word, r) => word.classList.toggle("now", r === row()));
    const most = Math.max(...seen.map((_, c) => weight(row(), c))) || 1;
    seen.forEach((word, c) => {
      tint(word, weight(row(), c) / most);
      word.title = weight(row(), c).toFixed(3);
    });
  };
  words.forEach((word, r) => {
    for (const on of ["mouseenter", "focus", "click"]) word.addEventListener(on, () => { state.row = r; show(); });
  });
  return [[make("p", { className: "words" }, ...spaced(words)), make("p", { className: "words" }, ...spaced(seen))], show];
}

const draw = (view) => make("section", {}, make("h2", {}, view.title), ...kinds[view.kind](view));

ask();
