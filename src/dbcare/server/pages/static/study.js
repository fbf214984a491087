"use strict";

const study = document.getElementById("study");
const connection = document.getElementById("connection");
const chart = document.getElementById("chart");
const RETRY = 2000; // milliseconds

// Pieces of the page.

const postponed = new Map(); // pieces that somebody is using right now

function show(name, html) {
  const place = document.querySelector(`[data-part="${name}"]`);
  const using = document.activeElement;
  if (using !== place && place.contains(using)) {
    postponed.set(name, html);
    return;
  }
  postponed.delete(name);
  const next = document.createElement("template");
  next.innerHTML = html; // rendered and escaped by the server
  for (const fold of place.querySelectorAll("details[open]")) {
    next.content.getElementById(fold.id)?.setAttribute("open", "");
  }
  if (next.innerHTML !== place.innerHTML) place.replaceChildren(next.content);
}

document.addEventListener("focusout", () => {
  setTimeout(() => postponed.forEach((html, name) => show(name, html)));
});

// The stream of updates. One that nobody looks at is closed: a browser has only six connections to a server.

let source = null;

function listen() {
  source?.close();
  source = new EventSource(study.dataset.events);
  source.onopen = () => say("live");
  source.onmessage = (event) => {
    const { chart: line, ...pieces } = JSON.parse(event.data);
    for (const [name, html] of Object.entries(pieces)) show(name, html);
    if (line) {
      chart.dataset.chart = JSON.stringify(line);
      draw();
    }
  };
  source.onerror = () => {
    say("connection lost, retrying…");
    if (source.readyState === EventSource.CLOSED) setTimeout(resume, RETRY);
  };
  source.addEventListener("gone", () => {
    source.close();
    source = null;
    document.removeEventListener("visibilitychange", resume);
    say("this study was deleted, or you are signed out");
  });
}

function resume() {
  if (document.hidden) {
    source?.close();
  } else if (source === null || source.readyState === EventSource.CLOSED) {
    listen();
  }
}

function say(text) {
  connection.textContent = text;
  connection.classList.toggle("live", text === "live");
}

// The break-even chart.

function draw() {
  if (!window.Plotly) return;
  const line = JSON.parse(chart.dataset.chart);
  chart.dataset.drawn = line.rewards.length;
  if (line.rewards.length < 2) {
    chart.textContent = "The chart appears after two rewards.";
    return;
  }
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const breaksEven = line.loss.some((loss) => loss !== null);
  const unit = line.unit.replace(/[&<>%{}]/g, (sign) => `&#${sign.charCodeAt(0)};`); // plotly.js reads HTML
  const trace = (name, y, shade) => ({
    name, x: line.rewards, y, mode: "lines", line: { color: color(shade), width: 2.5 },
    hovertemplate: `%{y:,.4~g} ${unit}`,
  });
  const traces = [trace("Spent", line.spent, "spent")];
  if (breaksEven) traces.unshift(trace("Expected loss of stopping now", line.loss, "loss"));
  // The first trials cost so little, and tell so little, that they would squeeze all the rest.
  const settled = Math.floor(line.rewards.length / 20);
  const heights = [line.spent, line.loss].flatMap((all) => all.slice(settled)).filter((height) => height > 0);
  const range = [Math.log10(Math.min(...heights)) - 0.1, Math.log10(Math.max(...heights)) + 0.1];
  const logarithmic = { type: "log", range, ...(range[1] - range[0] < 3 ? { dtick: "D2" } : { nticks: 6 }) };
  const axis = { color: color("quiet"), gridcolor: color("line"), linecolor: color("line"), zeroline: false };
  const layout = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: color("text") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 56, r: 12, t: 8, b: 44 }, height: chart.clientHeight,
    hovermode: "x unified",
    hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("text") } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    xaxis: { ...axis, title: { text: "rewards counted" }, rangemode: "tozero" },
    yaxis: { ...axis, title: { text: unit }, tickformat: ",~g", automargin: true, ...(breaksEven ? logarithmic : {}) },
  };
  if (!chart.classList.contains("js-plotly-plot")) chart.replaceChildren();
  Plotly.react(chart, traces, layout, { displayModeBar: false, responsive: true });
}

document.getElementById("plotly").addEventListener("load", draw);
document.getElementById("plotly").addEventListener("error", () => {
  chart.textContent = "The chart could not be loaded.";
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("visibilitychange", resume);
resume();
