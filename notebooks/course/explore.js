// The front of `explore`: native controls with labels, their values in words, and the picture.
//
// A native range input works from the keyboard, carries an accessible name through its label, and
// speaks its value in the same words that stand beside it. Python is told of a new value, and
// answers with the words of all controls and the next picture.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Each builder returns the elements of a control's row and a function that shows value and words.
const builders = {
  range(control, id, send) {
    const limits = { min: control.min, max: control.max, step: control.step };
    const bar = element("input", { type: "range", role: "slider", id, ...limits });
    const box = element("input", {
      type: "number",
      "aria-label": `${control.label}, as a number`,
      ...limits,
    });
    bar.addEventListener("input", () => send(Number(bar.value)));
    const take = () => {
      const typed = Number(box.value);
      const inside = Math.min(Math.max(typed, control.min), control.max);
      if (box.value.trim() !== "" && Number.isFinite(typed)) send(inside);
    };
    box.addEventListener("change", take);
    // Outside a form, Enter does not end the typing: the value would wait until the box is left.
    box.addEventListener("keydown", (event) => { if (event.key === "Enter") take(); });
    const show = (value, words) => {
      bar.value = value;
      if (document.activeElement !== box || Number(box.value) !== value) {
        box.value = value.toFixed(control.digits);
      }
      bar.setAttribute("aria-valuemin", control.min);
      bar.setAttribute("aria-valuemax", control.max);
      bar.setAttribute("aria-valuenow", value);
      bar.setAttribute("aria-valuetext", words || value.toFixed(control.digits));
    };
    return [[bar, box], show];
  },

  toggle(control, id, send) {
    const box = element("input", { type: "checkbox", id });
    box.addEventListener("change", () => send(box.checked));
    return [[box], (value) => { box.checked = value; }];
  },

  choice(control, id, send) {
    const list = element("select", { id });
    control.options.forEach((text, index) => {
      list.append(element("option", { value: index }, text));
    });
    list.addEventListener("change", () => send(Number(list.value)));
    return [[list], (value) => { list.value = value; }];
  },

  text(control, id, send) {
    // A sentence that is longer than the line wraps: a field of one line would hide its end.
    const long = control.max_length > 80;
    const line = element(long ? "textarea" : "input", {
      ...(long ? { rows: 1 } : { type: "text" }),
      id, maxlength: control.max_length, autocomplete: "off", spellcheck: "false",
    });
    const fit = () => { if (long) line.rows = Math.max(1, Math.ceil(line.value.length / 60)); };
    line.addEventListener("input", () => { fit(); send(line.value); });
    line.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) event.preventDefault(); // one paragraph
    });
    // What is being typed is not written over by an answer to an earlier letter.
    return [[line], (value) => {
      if (document.activeElement !== line) line.value = value;
      fit();
    }];
  },
};

// A new source for the picture that is there, where both are one image: nothing flickers.
function draw(stage, html) {
  const page = element("template");
  page.innerHTML = html;
  const next = page.content.children;
  const now = stage.children;
  if (next.length === 1 && now.length === 1 && next[0].tagName === "IMG" &&
      now[0].tagName === "IMG") {
    for (const { name, value } of next[0].attributes) now[0].setAttribute(name, value);
  } else {
    stage.replaceChildren(page.content);
  }
}

function render({ model, el }) {
  el.classList.add("course-explore");
  const rows = element("div", { class: "course-controls" });
  const stage = element("div", { class: "course-picture" });
  const shows = {};
  const unique = Math.random().toString(36).slice(2);

  for (const control of model.get("controls")) {
    const id = `course-${unique}-${control.name}`;
    const send = (value) => {
      model.set("values", { ...model.get("values"), [control.name]: value });
      model.save_changes();
    };
    const [inputs, show] = builders[control.kind](control, id, send);
    const words = element("span", { class: "course-words" });
    const label = element("label", { for: id }, control.label);
    // JupyterLab would take the arrow keys for itself, to walk from heading to heading.
    for (const input of inputs) input.dataset.lmSuppressShortcuts = "true";
    rows.append(element("div", { class: `course-row course-${control.kind}` },
      label, ...inputs, words));
    shows[control.name] = (value, said) => {
      show(value, said);
      words.textContent = said;
    };
  }

  const update = () => {
    const values = model.get("values");
    const words = model.get("words");
    for (const name of Object.keys(shows)) shows[name](values[name], words[name]);
  };
  const redraw = () => draw(stage, model.get("picture"));
  model.on("change:values", update);
  model.on("change:words", update);
  model.on("change:picture", redraw);
  el.append(rows, stage);
  update();
  redraw();
  return () => {
    model.off("change:values", update);
    model.off("change:words", update);
    model.off("change:picture", redraw);
  };
}

export default { render };
