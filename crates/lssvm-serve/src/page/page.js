// Asks the server, and shows what it says. Text is set as text, so that names may be anything.
const PEN = 20;
const BARS = 20;
const ROWS = 200;
const BATCH = 512;
const base = `/v2/models/${encodeURIComponent(facts.model.name)}`;
const nameOf = (k) => facts.names[k] || `output ${k + 1}`;
const short = (value) => Number(value.toPrecision(4)).toString();

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function fail(error) {
  $("error").textContent = error.message || String(error);
  $("error").hidden = false;
}

async function ask(path, rows, more) {
  const input = { name: "input", shape: [rows.length, facts.features], datatype: "FP64", data: rows.flat() };
  const response = await fetch(base + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ inputs: [input], ...more }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || response.statusText);
  return answer;
}

const tensor = (answer, name) => answer.outputs.find((output) => output.name === name);

// Rows with their class and numbers.
async function infer(rows) {
  const names = facts.classes ? ["class", "probabilities"] : ["values"];
  const answer = await ask("/infer", rows, { outputs: names.map((name) => ({ name })) });
  const numbers = tensor(answer, facts.classes ? "probabilities" : "values");
  const count = numbers.shape[1];
  return rows.map((row, i) => ({
    row,
    class: facts.classes ? tensor(answer, "class").data[i] : null,
    numbers: numbers.data.slice(i * count, (i + 1) * count),
  }));
}

function showBars(numbers) {
  let order = numbers.map((_, k) => k);
  const best = order.reduce((a, b) => (numbers[b] > numbers[a] ? b : a), 0);
  if (numbers.length > BARS) order = order.sort((a, b) => numbers[b] - numbers[a]).slice(0, BARS);
  $("bars").replaceChildren(...order.map((k) => {
    const bar = make("div", k === best ? "bar best" : "bar");
    const fill = make("div", "fill");
    fill.style.width = `${100 * numbers[k]}%`;
    const track = make("div", "track");
    track.append(fill);
    const name = make("div", "name", nameOf(k));
    name.title = nameOf(k);
    bar.append(name, track, make("div", "value", `${(100 * numbers[k]).toFixed(1)} %`));
    return bar;
  }));
}

function showResult(result) {
  $("error").hidden = true;
  $("empty").hidden = true;
  $("result").hidden = false;
  $("bars").replaceChildren();
  if (facts.classes) {
    $("answer").textContent = result.class;
    showBars(result.numbers);
    $("note").textContent = facts.calibrated
      ? "Calibrated probabilities."
      : "Softmax of the scores: right in order, but too modest; train with --loo to calibrate.";
  } else {
    const values = result.numbers.map((value, k) => (facts.names[k] ? `${facts.names[k]} ${short(value)}` : short(value)));
    $("answer").textContent = values.join(", ");
    $("note").textContent = "";
  }
}

function tile(told) {
  const figure = make("figure", "tile");
  if (told.picture) {
    const image = make("img");
    image.src = told.picture;
    image.alt = `training row ${told.row + 1}`;
    figure.append(image);
  }
  if (told.class !== null) figure.append(make("span", "name", told.class));
  const amount = `${told.value > 0 ? "+" : "−"}${short(Math.abs(told.value))}`;
  figure.append(make("span", "amount", told.picture ? amount : `${amount}, row ${told.row + 1} of the model, kernel ${short(told.kernel)}`));
  figure.title = `row ${told.row + 1} of the model, kernel ${short(told.kernel)}`;
  return figure;
}

function showWhy(told) {
  $("why").hidden = false;
  const name = told.output || "this value";
  $("why-title").textContent = `Why ${name}`;
  $("why-text").textContent = `Its score is ${short(told.score)}: what the training rows below add and take away, and `
    + `${short(told.rest)} of all others and the bias.`;
  for (const side of ["for", "against"]) {
    $(side).classList.toggle("words", !facts.image);
    $(side).replaceChildren(...told[side].map(tile));
  }
}

// The latest question counts; answers to earlier ones come too late.
let latest = 0;

async function predict(row) {
  const mine = ++latest;
  try {
    const [result] = await infer([row]);
    if (mine !== latest) return;
    showResult(result);
    const told = await ask("/explain", [row]);
    if (mine === latest) showWhy(told);
  } catch (error) {
    if (mine === latest) fail(error);
  }
  document.documentElement.dataset.answered = mine;
}

function showRows(results, all) {
  $("rows").hidden = false;
  const shown = results.slice(0, ROWS);
  $("rows-note").textContent = all > shown.length ? `${all} rows, of which the first ${shown.length} are shown.` : `${all} rows.`;
  const head = make("tr");
  const titles = facts.classes ? ["row", "class", "probability", ""] : ["row", ...facts.names.map((_, k) => nameOf(k)), ""];
  head.append(...titles.map((title) => make("th", "", title)));
  $("rows-head").replaceChildren(head);
  $("rows-body").replaceChildren(...shown.map((result, i) => {
    const line = make("tr");
    const cells = facts.classes
      ? [result.class, `${(100 * Math.max(...result.numbers)).toFixed(1)} %`]
      : result.numbers.map(short);
    line.append(...[i + 1, ...cells].map((text) => make("td", "", text)));
    const button = make("button", "", "show");
    button.type = "button";
    button.addEventListener("click", () => choose(result.row));
    const cell = make("td");
    cell.append(button);
    line.append(cell);
    return line;
  }));
}

// Shows a row where it is entered, and predicts it.
function choose(row) {
  if (facts.image) showNumbers(row);
  else fill(row);
  return predict(row);
}

function showNumbers(row) {
  const white = Number($("white").value) || 255;
  const canvas = canvasOf(width, height);
  const image = brush(canvas).createImageData(width, height);
  const size = width * height;
  for (let at = 0; at < size; at++) {
    for (let c = 0; c < 3; c++) {
      image.data[4 * at + c] = (255 * row[(channels === 3 ? c * size : 0) + at]) / white;
    }
    image.data[4 * at + 3] = 255;
  }
  brush(canvas).putImageData(image, 0, 0);
  onSheet(canvas);
  look(canvas);
}

function look(canvas) {
  brush($("seen")).drawImage(canvas, 0, 0);
}

function onSheet(canvas) {
  const sheet = $("sheet");
  const pen = black(sheet);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, 0, 0, sheet.width, sheet.height);
  pen.imageSmoothingEnabled = true;
}

async function take(file) {
  const mine = ++latest;
  $("rows").hidden = true;
  try {
    if (file.type.startsWith("image/")) await takeImage(file);
    else await takeText(await file.text());
  } catch (error) {
    // Somebody has asked something else meanwhile.
    if (mine !== latest) return;
    fail(error);
    document.documentElement.dataset.answered = ++latest;
  }
}

async function takeImage(file) {
  if (!facts.image) throw new Error("this model takes tables of numbers, not images");
  const bitmap = await createImageBitmap(file);
  const canvas = fitted(bitmap, [0, 0, bitmap.width, bitmap.height], 1);
  if ($("invert").checked) inverted(canvas);
  onSheet(canvas);
  look(canvas);
  await predict(numbersOf(canvas));
}

async function takeText(text) {
  const rows = rowsOf(text);
  const results = [];
  for (let at = 0; at < rows.length; at += BATCH) {
    results.push(...await infer(rows.slice(at, at + BATCH)));
    if (results.length >= ROWS) break;
  }
  if (rows.length > 1) showRows(results, rows.length);
  await choose(rows[0]);
}

function startDrawing() {
  const sheet = $("sheet");
  sheet.height = Math.round((sheet.width * height) / width);
  $("seen").width = width;
  $("seen").height = height;
  const pen = black(sheet);
  let last = null;
  const place = (event) => {
    const box = sheet.getBoundingClientRect();
    return [((event.clientX - box.left) * sheet.width) / box.width, ((event.clientY - box.top) * sheet.height) / box.height];
  };
  const draw = (event) => {
    const at = place(event);
    pen.strokeStyle = "#fff";
    pen.lineWidth = PEN;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...(last || at));
    pen.lineTo(...at);
    pen.stroke();
    last = at;
  };
  const ask = () => {
    const canvas = fromSheet(sheet);
    if (!canvas) return;
    look(canvas);
    predict(numbersOf(canvas));
  };
  sheet.addEventListener("pointerdown", (event) => {
    if (event.isTrusted) sheet.setPointerCapture(event.pointerId);
    draw(event);
  });
  sheet.addEventListener("pointermove", (event) => last && draw(event));
  for (const end of ["pointerup", "pointercancel"]) {
    sheet.addEventListener(end, () => {
      if (last) ask();
      last = null;
    });
  }
  $("clear").addEventListener("click", () => {
    latest++;
    black(sheet);
    black($("seen"));
    for (const part of ["result", "why", "error"]) $(part).hidden = true;
    $("empty").hidden = false;
  });
  for (const option of ["centre", "white"]) $(option).addEventListener("change", ask);
}

// Features with a field each, up to this many; more are a line of text.
const FIELDS = 40;

function fill(row) {
  const fields = [...$("fields").querySelectorAll("input")];
  fields.forEach((field, j) => (field.value = row[j]));
  if (!fields.length) $("row").value = row.join(", ");
}

function startTable() {
  const few = facts.features <= FIELDS;
  $("row-label").hidden = few;
  if (few) {
    for (let j = 0; j < facts.features; j++) {
      const label = make("label", "", facts.featureNames ? facts.featureNames[j] : `feature ${j + 1}`);
      const field = make("input");
      field.type = "number";
      field.step = "any";
      label.append(field);
      $("fields").append(label);
    }
  }
  $("table").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = [...$("fields").querySelectorAll("input")];
    try {
      const text = few ? fields.map((field) => field.value.trim()).join(",") : $("row").value;
      predict(rowsOf(text)[0]);
    } catch (error) {
      fail(error);
    }
  });
}

function startFiles() {
  const drop = $("drop");
  $("drop-text").textContent = facts.image
    ? `or drop an image here, or a CSV file with ${facts.features} numbers a line`
    : "or drop a CSV file here";
  $("file").addEventListener("change", () => {
    const [file] = $("file").files;
    if (file) take(file);
    $("file").value = "";
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
  }
}

document.title = `${facts.model.name}: lssvm`;
$("title").textContent = facts.model.name;
const task = facts.classes ? `${facts.names.length} classes` : `${facts.names.length === 1 ? "a value" : `${facts.names.length} values`}`;
const takes = facts.image ? `images of ${width} × ${height} pixels${channels > 1 ? ` in ${channels} colours` : ""}` : `rows of ${facts.features} numbers`;
$("facts").textContent = `Predicts ${task} of ${takes}; ${facts.support.toLocaleString("en")} training rows, ${facts.kernel} kernel, ${facts.precision}.`;
$("empty").textContent = facts.image ? "Draw something, or drop a file." : "Enter a row, or drop a file.";
if (facts.image) {
  $("drawing").hidden = false;
  $("invert").parentElement.hidden = channels > 1;
  startDrawing();
} else {
  $("table").hidden = false;
  startTable();
}
startFiles();
