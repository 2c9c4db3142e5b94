// The console works without this file. With it, pages make themselves anew when
// something has changed, draw charts, and can be used from the keyboard.
"use strict";
(() => {
  const main = () => document.getElementById("main");
  let stream = null, listening = "", waiting = false;

  // Whoever writes, selects or has something open is not disturbed.
  const busy = () => {
    const m = main(), active = document.activeElement;
    return m.querySelector("form details[open], .acts details[open], details.row[open]") !== null ||
      (active && m.contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName)) || String(window.getSelection()) !== "";
  };

  const refresh = (changed) => {
    if (document.hidden || waiting) return;
    if (busy()) {
      if (changed) document.getElementById("stale").hidden = false;
      return;
    }
    waiting = true;
    htmx.ajax("GET", location.pathname + location.search, { target: "#main", select: "#main", swap: "outerHTML" })
      .finally(() => { waiting = false; });
  };

  const listen = () => {
    const path = main().dataset.live || "";
    if (path === listening) return;
    if (stream) stream.close();
    stream = null;
    listening = path;
    if (!path || !window.EventSource) return;
    stream = new EventSource(path);
    stream.addEventListener("change", () => refresh(true));
    stream.addEventListener("tick", () => refresh(false));
  };

  const colors = () => {
    const style = getComputedStyle(document.documentElement);
    return ["--c1", "--c2", "--c3", "--c4", "--c5"].map((n) => style.getPropertyValue(n).trim());
  };

  // Everything here is in UTC.
  const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 16);

  const draw = () => {
    const style = getComputedStyle(document.documentElement), palette = colors();
    const quiet = style.getPropertyValue("--dim").trim(), line = style.getPropertyValue("--line").trim();
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      if (figure.querySelector(".uplot")) continue;
      const chart = JSON.parse(figure.dataset.chart);
      const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui" };
      const plot = document.createElement("div");
      plot.className = "plot";
      figure.insertBefore(plot, figure.querySelector("dl"));
      figure.querySelectorAll("dl dt").forEach((dt, i) => { dt.style.setProperty("--mark", palette[i % palette.length]); });
      new uPlot({
        width: Math.max(plot.clientWidth, 200), height: 120, legend: { show: false }, cursor: { y: false, points: { size: 5 } },
        scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 1)] } },
        axes: [{ ...axis, size: 22, space: 60, values: (_, at) => at.map(clock) }, { ...axis, size: 34 }],
        series: [{}, ...chart.names.map((name, i) => ({ label: name, stroke: palette[i % palette.length], width: 1.5, points: { show: false } }))],
      }, chart.series, plot);
    }
  };

  const copies = () => {
    for (const code of document.querySelectorAll("[data-copy]")) {
      if (code.dataset.copy === "on" || !navigator.clipboard) continue;
      code.dataset.copy = "on";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copying";
      button.textContent = "copy";
      button.addEventListener("click", () => navigator.clipboard.writeText(code.textContent).then(() => {
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1500);
      }));
      code.after(button);
    }
  };

  // j and k walk along the rows of a list, / leads to the search, Enter opens.
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const search = document.getElementById("search");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
      search.select();
      return;
    }
    if (event.key !== "j" && event.key !== "k") return;
    const links = [...document.querySelectorAll("table.list tbody tr > td:first-child a, ol.timeline a")];
    if (links.length === 0) return;
    const now = links.indexOf(document.activeElement), step = event.key === "j" ? 1 : -1;
    links[Math.min(Math.max(now + step, 0), links.length - 1)].focus();
  };

  const ready = () => { listen(); draw(); copies(); };
  document.addEventListener("DOMContentLoaded", () => {
    ready();
    const here = document.querySelector(".menu [aria-current]");
    if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;
    document.addEventListener("keydown", keys);
    document.addEventListener("change", (event) => {
      const form = event.target.closest("form[data-filters]");
      if (form && (event.target.tagName === "SELECT" || event.target.type === "checkbox")) form.requestSubmit();
    });
    // Empty fields are no filters: the address stays short.
    document.addEventListener("submit", (event) => {
      if (!event.target.matches("form[data-filters]")) return;
      for (const field of event.target.elements) if (field.value === "") field.disabled = true;
    });
    document.addEventListener("visibilitychange", () => refresh(false));
    window.addEventListener("pageshow", () => {
      for (const field of document.querySelectorAll("form[data-filters] [disabled]")) field.disabled = false;
    });
  });
  // Somebody may have begun to write while the page was being fetched.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!busy()) return;
    event.detail.shouldSwap = false;
    document.getElementById("stale").hidden = false;
  });
  document.addEventListener("htmx:afterSettle", ready);
})();
