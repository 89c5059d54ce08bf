// Stands last in a page under test: tells the page around it what it finds.
window.addEventListener("load", async () => {
  const shown = (element) => element.getBoundingClientRect().width > 0;
  const overlap = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;

  function look(chart) {
    const drawings = [...chart.querySelectorAll(":scope > svg")].filter(shown);
    const svg = drawings[0];
    const box = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")];
    const cut = texts.filter((text) => {
      const at = text.getBoundingClientRect();
      return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
    });
    const labels = [...svg.querySelectorAll(".x-tick, .y-tick, .end-label, .legend, .title, .row, .x-label, .y-label")];
    const overlapping = [];
    labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => {
      if (overlap(a.getBoundingClientRect(), b.getBoundingClientRect())) {
        overlapping.push(`${a.textContent} / ${b.textContent}`);
      }
    }));
    const text = (name) => svg.querySelector(name)?.textContent;
    return {
      kind: chart.classList.contains("plot") ? "plot" : "heatmap",
      drawingsShown: drawings.length,
      xLabel: text(".x-label"),
      yLabel: text(".y-label"),
      xTicks: svg.querySelectorAll(".x-tick").length,
      yTicks: svg.querySelectorAll(".y-tick").length,
      cutTexts: cut.map((text) => text.textContent),
      overlappingLabels: overlapping,
    };
  }

  const images = [...document.images];
  const charts = [...document.querySelectorAll(".chart")];
  const root = document.documentElement;
  const wide = [...document.body.querySelectorAll("main *")].filter((element) =>
    element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".table, svg"));
  const found = {
    width: innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches
      && getComputedStyle(document.body).backgroundColor === "rgb(21, 24, 28)",
    tooWide: root.scrollWidth > innerWidth
      ? wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).concat(`${root.scrollWidth}`) : [],
    images: images.length,
    imagesLoaded: images.filter((image) => image.naturalWidth > 0).length,
    charts: charts.map(look),
    listShown: [...document.querySelectorAll("nav")].some(shown),
    buttonsShown: [...document.querySelectorAll("[data-save]")].filter(shown).length,
  };
  document.querySelectorAll("[data-save]").forEach((button) => button.click());
  const expected = 2 * charts.length;
  for (let i = 0; i < 50 && tested.saved.length < expected; i++) {
    await new Promise((done) => setTimeout(done, 100));
  }
  found.requests = performance.getEntriesByType("resource").map((entry) => entry.name)
    .filter((name) => !/^(data|blob):/.test(name));
  found.saved = tested.saved;
  found.variablesInSaved = tested.texts.some((text) => text.includes("var("));
  found.errors = tested.errors;
  parent.postMessage(JSON.stringify(found), "*");
});
