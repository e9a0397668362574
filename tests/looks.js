// Looks at a page of JupyterLab the way a reader does: what is cut off, what cannot be read.
//
// tests/lab.py loads this file into the page and calls the functions of `looks`. Colors are those
// that are drawn, not those that are written: a picture is painted without its texts, and each text
// is held against the pixels that it lies on.

window.looks = (() => {
  const MOST = 0.5; // half a pixel, what rounding may cost

  // ---------------------------------------------------------------- contrast

  function luminance([red, green, blue]) {
    const [r, g, b] = [red, green, blue].map((level) => {
      const share = level / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  // WCAG's contrast of two colors, 1 to 21.
  function contrast(one, two) {
    const [low, high] = [luminance(one), luminance(two)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  // "rgb(1, 2, 3)" or "rgba(1, 2, 3, 0.4)" as four numbers.
  function color(text) {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    return [red, green, blue, alpha];
  }

  // ---------------------------------------------------------------- geometry

  function bounds(corners) {
    const xs = corners.map((p) => p.x);
    const ys = corners.map((p) => p.y);
    return {
      left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys),
    };
  }

  // Whether two rectangles that may be turned share more than `slack` pixels in every direction.
  function overlap(one, two, slack) {
    for (const corners of [one, two]) {
      for (let i = 0; i < 2; i += 1) {
        const [a, b] = [corners[i], corners[i + 1]];
        const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
        const [ux, uy] = [(b.x - a.x) / length, (b.y - a.y) / length];
        const [first, second] = [one, two].map((corner) => corner.map((p) => p.x * ux + p.y * uy));
        const shared = Math.min(Math.max(...first), Math.max(...second)) -
          Math.max(Math.min(...first), Math.min(...second));
        if (shared <= slack) return false;
      }
    }
    return true;
  }

  // ---------------------------------------------------------------- pictures

  // Where a text's letters stand: its box without the room above capitals and below the line.
  function letters(text, origin) {
    const box = text.getBBox();
    const [top, bottom] = [box.y + 0.2 * box.height, box.y + 0.94 * box.height];
    const matrix = text.getScreenCTM();
    const at = (x, y) => {
      const point = new DOMPoint(x, y).matrixTransform(matrix);
      return { x: point.x - origin.left, y: point.y - origin.top };
    };
    const left = box.x;
    const right = box.x + box.width;
    return {
      corners: [at(left, top), at(right, top), at(right, bottom), at(left, bottom)],
      at: (across, down) => at(left + across * box.width, top + down * (bottom - top)),
    };
  }

  function opacity(node) {
    let share = 1;
    for (let one = node; one instanceof Element; one = one.parentNode) {
      share *= Number(getComputedStyle(one).opacity);
    }
    return share;
  }

  async function painted(svg, width, height, ground) {
    const source = new XMLSerializer().serializeToString(svg);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    context.drawImage(image, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  }

  // What is wrong with the texts of an SVG picture: a list of sentences.
  // least: the contrast that is asked; grounds: the page's colors, in its themes, on which the
  // picture lies; the worst counts.
  async function svg(source, { grounds = ["#ffffff", "#111111"], least = 4.5 } = {}) {
    const host = document.createElement("div");
    host.style.cssText = "position:fixed;left:0;top:0;visibility:hidden;pointer-events:none";
    const inside = host.attachShadow({ mode: "open" }); // an <img> knows nothing of the page's CSS
    document.body.append(host);
    const found = [];
    try {
      const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
      if (parsed.querySelector("parsererror")) return ["not well-formed"];
      const drawing = document.importNode(parsed.documentElement, true);
      drawing.style.cssText = "display:block;font-size:medium;line-height:normal";
      inside.append(drawing);
      const frame = drawing.getBoundingClientRect();
      const texts = [...drawing.querySelectorAll("text")].filter((t) => t.textContent.trim());
      const seen = texts.map((text) => {
        const style = getComputedStyle(text);
        return {
          said: text.textContent.trim().slice(0, 50),
          ...letters(text, frame),
          ink: color(style.fill),
          opacity: opacity(text) * Number(style.fillOpacity),
        };
      });
      for (const text of seen) {
        const box = bounds(text.corners);
        text.box = box;
        const over = Math.max(-box.left, -box.top, box.right - frame.width,
          box.bottom - frame.height);
        if (over > MOST) found.push(`"${text.said}" is cut off, ${over.toFixed(1)} px outside`);
      }
      for (let i = 0; i < seen.length; i += 1) {
        for (let j = i + 1; j < seen.length; j += 1) {
          const [one, two] = [seen[i], seen[j]];
          if (one.box.right < two.box.left || two.box.right < one.box.left) continue;
          if (overlap(one.corners, two.corners, 1.5)) {
            found.push(`"${one.said}" and "${two.said}" are written over each other`);
          }
        }
      }
      const [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
      for (const text of texts) {
        // A halo, drawn under the letters, is part of the ground.
        if (getComputedStyle(text).paintOrder.startsWith("stroke")) text.style.fill = "none";
        else text.style.display = "none";
      }
      const bare = [];
      for (const ground of grounds) bare.push(await painted(drawing, width, height, ground));
      for (const text of seen) {
        let [good, all, worst] = [0, 0, 21];
        for (let across = 0.04; across < 1; across += 0.08) {
          for (const down of [0.1, 0.3, 0.5, 0.7, 0.9]) {
            const { x, y } = text.at(across, down);
            const [column, row] = [Math.floor(x), Math.floor(y)];
            if (column < 0 || row < 0 || column >= width || row >= height) continue;
            const place = 4 * (row * width + column);
            const share = text.ink[3] * text.opacity;
            const now = Math.min(...bare.map((pixels) => {
              const under = pixels.subarray(place, place + 3);
              const ink = [0, 1, 2].map((k) => share * text.ink[k] + (1 - share) * under[k]);
              return contrast(ink, under);
            }));
            all += 1;
            if (now >= least) good += 1;
            worst = Math.min(worst, now);
          }
        }
        // A thin line may run through a word; a word may not lie on a ground it does not stand
        // out from.
        if (all && good / all < 0.8) {
          found.push(`"${text.said}" has a contrast of ${worst.toFixed(1)} on ` +
            `${Math.round(100 * (1 - good / all))} % of its ground`);
        }
      }
    } finally {
      host.remove();
    }
    return found;
  }

  // The source of an <img> with an SVG, or null.
  async function source(image) {
    const address = image.currentSrc || image.src;
    if (address.startsWith("data:image/svg+xml") || /\.svg(\?|$)/.test(address)) {
      return (await fetch(address)).text();
    }
    return null;
  }

  // ---------------------------------------------------------------- the page

  function where(element) {
    const said = (element.textContent || element.value || "").trim().replace(/\s+/g, " ");
    const name = element.className && element.className.baseVal === undefined
      ? `.${[...element.classList].join(".")}` : "";
    return `<${element.tagName.toLowerCase()}${name}> "${said.slice(0, 60)}"`;
  }

  // What does not fit its box, and pictures drawn much smaller than they are.
  function cut(panel) {
    const found = [];
    const areas = panel.querySelectorAll(".jp-OutputArea-output, .jp-MarkdownOutput, .cm-scroller");
    for (const area of areas) {
      for (const element of [area, ...area.querySelectorAll("*")]) {
        // MathJax keeps a copy of a formula for screen readers, clipped to nothing.
        if (element.closest("mjx-assistive-mml, svg, .course-sr-only")) continue;
        const style = getComputedStyle(element);
        if (style.overflowX === "visible" || element.clientWidth === 0) continue;
        const over = element.scrollWidth - element.clientWidth;
        if (over > 1) found.push(`${where(element)} is ${over} px wider than its place`);
      }
      for (const image of area.querySelectorAll("img")) {
        const scale = image.clientWidth / image.naturalWidth;
        if (image.clientWidth && scale < 0.8) {
          found.push(`"${image.alt.slice(0, 60)}" is drawn at ${scale.toFixed(2)} of its size`);
        }
      }
    }
    return [...new Set(found)];
  }

  // ---------------------------------------------------------------- the kernel

  // Messages to the kernel's widgets that have not been answered yet.
  const open = new Set();
  let listening = null;

  function listen() {
    const widget = window.jupyterapp.shell.currentWidget;
    const kernel = widget.sessionContext.session.kernel;
    if (listening === kernel) return;
    listening = kernel;
    kernel.anyMessage.connect((_, { msg, direction }) => {
      if (direction === "send" && msg.header.msg_type === "comm_msg") open.add(msg.header.msg_id);
      if (direction === "recv" && msg.header.msg_type === "status" &&
          msg.content.execution_state === "idle") open.delete(msg.parent_header.msg_id);
    });
  }

  const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });

  // Press-and-see: call `expect(explorer)` before a key, `await changed()` after it.
  let expected = null;

  function expect(explorer) {
    listen();
    const stage = explorer.querySelector(".course-picture");
    expected = { stage, before: stage.innerHTML, pressed: performance.now() };
    document.addEventListener("keydown", () => { expected.pressed = performance.now(); },
      { once: true, capture: true });
  }

  // Milliseconds from the key to the first frame with a new picture; null where the kernel has
  // answered everything and the picture is the old one.
  async function changed(most = 20000) {
    const began = performance.now();
    let quiet = 0;
    while (performance.now() - began < most) {
      await frame();
      if (expected.stage.innerHTML !== expected.before) {
        return performance.now() - expected.pressed;
      }
      // an answer that has come is drawn some turns of the event loop later
      quiet = open.size ? 0 : quiet + 1;
      if (quiet > 6) return null;
    }
    throw new Error(`the kernel did not answer in ${most} ms`);
  }

  async function answered(most = 20000) {
    const began = performance.now();
    let quiet = 0;
    while (open.size || quiet < 1) {
      await frame();
      quiet += 1;
      if (performance.now() - began > most) throw new Error("the kernel did not answer");
    }
  }

  // One key in two calls: `before(explorer)`, the key, and `after()`, which also tells what is
  // shown now.
  async function before(explorer) {
    await answered();
    expect(explorer);
  }

  async function after() {
    const milliseconds = await changed();
    return { milliseconds, ...(await shown(expected.stage)) };
  }

  // What stands in a picture's place: how many things, a message in its stead, its images.
  async function shown(stage) {
    const images = [...stage.querySelectorAll("img")];
    return {
      things: stage.children.length,
      message: stage.innerText.includes("could not be drawn") ? stage.innerText : "",
      alts: images.map((image) => image.alt),
      sources: await Promise.all(images.map(source)),
    };
  }

  return { before, after, shown, svg, source, cut, expect, changed, answered, contrast };
})();
