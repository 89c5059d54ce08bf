"use strict";
// From drawings, pictures and text to rows of numbers.
const facts = JSON.parse(document.getElementById("model").textContent);
const $ = (id) => document.getElementById(id);
const [channels, height, width] = facts.image || [0, 0, 0];

// MNIST's digits are 20 pixels high in images of 28, their centre of mass in the middle.
const INK_SHARE = 20 / 28;

function canvasOf(w, h) {
  const canvas = document.createElement("canvas");
  canvas.width = w;
  canvas.height = h;
  return canvas;
}

function brush(canvas) {
  return canvas.getContext("2d", { willReadFrequently: true });
}

// Where something is drawn: [left, top, width, height], or null.
function inked(canvas) {
  const { width: w, height: h } = canvas;
  const pixels = brush(canvas).getImageData(0, 0, w, h).data;
  let [left, top, right, bottom] = [w, h, -1, -1];
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const at = 4 * (y * w + x);
      if (pixels[at] + pixels[at + 1] + pixels[at + 2] > 24) {
        left = Math.min(left, x);
        right = Math.max(right, x);
        top = Math.min(top, y);
        bottom = Math.max(bottom, y);
      }
    }
  }
  return right < 0 ? null : [left, top, right - left + 1, bottom - top + 1];
}

// Scales by halves first: one great step would look at few of the pixels.
function scaled(source, [left, top, w, h], target, [x, y, tw, th]) {
  while (w > 2 * tw && h > 2 * th) {
    const half = canvasOf(Math.ceil(w / 2), Math.ceil(h / 2));
    brush(half).drawImage(source, left, top, w, h, 0, 0, half.width, half.height);
    [source, left, top, w, h] = [half, 0, 0, half.width, half.height];
  }
  brush(target).drawImage(source, left, top, w, h, x, y, tw, th);
}

function black(canvas) {
  const pen = brush(canvas);
  pen.fillStyle = "#000";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  return pen;
}

// Draws a source as large as it fits into the shape of the model.
function fitted(source, box, share) {
  const target = canvasOf(width, height);
  black(target);
  const factor = share * Math.min(width / box[2], height / box[3]);
  const [w, h] = [Math.max(1, box[2] * factor), Math.max(1, box[3] * factor)];
  scaled(source, box, target, [(width - w) / 2, (height - h) / 2, w, h]);
  return target;
}

// Moves the centre of mass to the middle.
function balanced(canvas) {
  const pixels = brush(canvas).getImageData(0, 0, width, height).data;
  let [sum, x, y] = [0, 0, 0];
  for (let at = 0; at < width * height; at++) {
    const value = pixels[4 * at];
    sum += value;
    x += value * (at % width);
    y += value * Math.floor(at / width);
  }
  if (!sum) return canvas;
  const target = canvasOf(width, height);
  black(target).drawImage(canvas, Math.round((width - 1) / 2 - x / sum), Math.round((height - 1) / 2 - y / sum));
  return target;
}

// What is on the sheet, in the shape of the model.
function fromSheet(sheet) {
  const box = inked(sheet);
  if (!box) return null;
  if (!$("centre").checked) return fitted(sheet, [0, 0, sheet.width, sheet.height], 1);
  return balanced(fitted(sheet, box, INK_SHARE));
}

function inverted(canvas) {
  const pen = brush(canvas);
  const image = pen.getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < image.data.length; at++) {
    if (at % 4 < 3) image.data[at] = 255 - image.data[at];
  }
  pen.putImageData(image, 0, 0);
}

// The numbers of a canvas of the model's shape, plane after plane.
function numbersOf(canvas) {
  const pixels = brush(canvas).getImageData(0, 0, width, height).data;
  const white = Number($("white").value) || 255;
  const value = (v) => (white === 255 ? Math.round(v) : (v * white) / 255);
  const numbers = [];
  for (let c = 0; c < channels; c++) {
    for (let at = 0; at < width * height; at++) {
      const [r, g, b] = pixels.slice(4 * at, 4 * at + 3);
      const grey = 0.299 * r + 0.587 * g + 0.114 * b;
      numbers.push(value(channels === 3 ? [r, g, b][c] : grey));
    }
  }
  return numbers;
}

// One field of a line after the other; quotes may hold what separates them.
function split(line) {
  const separator = [",", ";", "\t"].find((s) => line.includes(s)) || /\s+/;
  if (!line.includes('"')) return line.trim().split(separator).map((field) => field.trim());
  const fields = [];
  let [field, quoted] = ["", false];
  for (const letter of line) {
    if (letter === '"') quoted = !quoted;
    else if (letter === separator && !quoted) {
      fields.push(field.trim());
      field = "";
    } else field += letter;
  }
  return [...fields, field.trim()];
}

// The number in a field; nothing is no number.
function number(field) {
  return field === "" ? NaN : Number(field);
}

// Rows of numbers from the lines of a file, or an error that names the line.
function rowsOf(text) {
  const lines = text.split(/\r?\n/).map((line, i) => [line, i + 1]).filter(([line]) => line.trim());
  if (!lines.length) throw new Error("the file is empty");
  const first = split(lines[0][0]);
  const isHeader = first.some((field) => Number.isNaN(number(field))) && lines.length > 1
    && first.every((field) => Number.isNaN(number(field)) || field === "");
  let columns = null;
  if (isHeader) {
    lines.shift();
    const names = facts.featureNames;
    if (names && names.every((name) => first.includes(name))) {
      columns = names.map((name) => first.indexOf(name));
    } else {
      columns = first.map((_, i) => i).filter((i) => !facts.labelNames.includes(first[i]));
    }
  }
  return lines.map(([line, place]) => {
    let fields = split(line);
    if (columns) fields = columns.map((i) => fields[i] ?? "");
    // Without names a label may stand at the end.
    if (!columns && fields.length === facts.features + 1) fields.pop();
    if (fields.length !== facts.features) {
      throw new Error(`line ${place} has ${fields.length} values, and the model wants ${facts.features}`);
    }
    const numbers = fields.map(number);
    const bad = numbers.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) throw new Error(`line ${place}: "${fields[bad]}" is no number`);
    return numbers;
  });
}
