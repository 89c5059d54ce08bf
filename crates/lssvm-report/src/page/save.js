// Saves drawings as files: SVG as it is seen, PNG by way of a canvas.
"use strict";
(() => {
  // How many pixels of the PNG are one of the drawing.
  const SCALE = 2;

  // A file cannot see the page's variables: each is replaced by its value.
  function standAlone(chart) {
    const copy = chart.querySelector("svg").cloneNode(true);
    const style = getComputedStyle(document.documentElement);
    const value = (_, name) => style.getPropertyValue(name).trim();
    for (const element of [copy, ...copy.querySelectorAll("*")]) {
      for (const attribute of element.attributes) {
        if (attribute.value.includes("var(")) {
          attribute.value = attribute.value.replace(/var\((--[\w-]+)\)/g, value);
        }
      }
    }
    return new XMLSerializer().serializeToString(copy);
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    // Not at once: the browser may still be reading.
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function rasterise(chart, text, then) {
    const box = chart.querySelector("svg").viewBox.baseVal;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = SCALE * box.width;
      canvas.height = SCALE * box.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(then, "image/png");
    };
    // Not a blob: address, which makes some browsers forbid reading the canvas.
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-save]");
    if (!button) return;
    const chart = button.closest(".chart");
    const text = standAlone(chart);
    const name = chart.dataset.name;
    if (button.dataset.save === "svg") {
      download(new Blob([text], { type: "image/svg+xml" }), name + ".svg");
    } else {
      rasterise(chart, text, (blob) => download(blob, name + ".png"));
    }
  });
  // Without scripts the buttons stay hidden.
  document.documentElement.classList.add("scripted");
})();
