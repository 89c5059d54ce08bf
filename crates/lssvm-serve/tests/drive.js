// Stands last in a page under test: uses it as a person would, and tells the page around it what
// was seen.
window.addEventListener("load", async () => {
  const root = document.documentElement;
  const get = (id) => document.getElementById(id);
  const shown = (element) => element.getBoundingClientRect().width > 0;
  const steps = [];

  // Does something, and looks when the page has its answer.
  async function step(name, act, answers = true) {
    const before = root.dataset.answered;
    await act();
    for (let i = 0; i < 1000 && answers && root.dataset.answered === before; i++) {
      await new Promise((done) => setTimeout(done, 20));
    }
    await new Promise((done) => setTimeout(done, 50));
    const images = [...document.images].filter(shown);
    const wide = [...document.querySelectorAll("main *")].filter((element) =>
      element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll"));
    steps.push({
      name,
      answer: shown(get("answer")) ? get("answer").textContent : null,
      error: shown(get("error")) ? get("error").textContent : null,
      bars: document.querySelectorAll(".bar").length,
      filled: [...document.querySelectorAll(".bar.best .fill")].map((fill) =>
        fill.getBoundingClientRect().width / fill.parentElement.getBoundingClientRect().width),
      why: shown(get("why")) ? get("why-title").textContent : null,
      for: get("for").children.length,
      images: images.length,
      imagesLoaded: images.filter((image) => image.naturalWidth > 0).length,
      rows: [...get("rows-body").children].map((line) => line.children[1].textContent),
      tooWide: root.scrollWidth > innerWidth ? wide.map((e) => e.outerHTML.slice(0, 90)) : [],
    });
  }

  function point(kind, x, y) {
    const box = get("sheet").getBoundingClientRect();
    get("sheet").dispatchEvent(new PointerEvent(kind, {
      bubbles: true, pointerId: 1, clientX: box.left + x * box.width, clientY: box.top + y * box.height,
    }));
  }

  function draw(points) {
    const [first, ...rest] = points;
    point("pointerdown", ...first);
    rest.forEach((at) => point("pointermove", ...at));
    point("pointerup", ...points[points.length - 1]);
  }

  function drop(name, type, parts) {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(parts, name, { type }));
    document.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
  }

  // A picture of dark ink on light paper, twice as wide as high.
  function picture() {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [200, 200];
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, 200, 200);
    pen.fillStyle = "#000";
    pen.fillRect(30, 88, 140, 24);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  await step("start", () => {}, false);
  if (shown(get("drawing"))) {
    await step("upright", () => draw([[0.2, 0.1], [0.2, 0.5], [0.2, 0.9]]));
    await step("clear", () => get("clear").click(), false);
    await step("level", () => draw([[0.1, 0.8], [0.9, 0.8]]));
    get("clear").click();
    await step("aslant", () => draw([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]]));
    get("invert").checked = true;
    const file = await picture();
    await step("image", () => drop("level.png", "image/png", [file]));
    await step("lines", () => drop("two.csv", "text/csv", [window.lines]));
    await step("broken", () => drop("bad.png", "image/png", ["no image"]));
    await step("short", () => drop("bad.csv", "text/csv", ["1,2,3\n"]));
  } else {
    const fields = [...document.querySelectorAll("#fields input")];
    fields.forEach((field, j) => (field.value = window.values[j]));
    await step("row", () => get("table").requestSubmit());
    fields[1].value = "";
    await step("missing", () => get("table").requestSubmit(), false);
    await step("lines", () => drop("two.csv", "text/csv", [window.lines]));
    await step("image", () => drop("a.png", "image/png", [""]));
  }
  await fetch("/found", { method: "POST", body: JSON.stringify({
    width: innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches
      && getComputedStyle(document.body).backgroundColor === "rgb(21, 24, 28)",
    title: document.title,
    labels: [...document.querySelectorAll("#fields label")].map((label) => label.textContent),
    steps,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name)
      .filter((name) => !/^(data|blob):/.test(name) && !name.startsWith(location.origin)),
    errors: tested.errors,
  }) });
});
