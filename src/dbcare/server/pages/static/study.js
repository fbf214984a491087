"use strict";

const study = document.getElementById("study");
const connection = document.getElementById("connection");
const chart = document.getElementById("chart");
const axisSwitch = document.getElementById("axis");
const RETRY_MILLISECONDS = 2000;

// Updates of the page's pieces.

const postponed = new Map(); // updates of pieces that have the focus

function show(name, html) {
  const place = document.querySelector(`[data-part="${name}"]`);
  const focused = document.activeElement;
  if (focused !== place && place.contains(focused)) {
    postponed.set(name, html);
    return;
  }
  postponed.delete(name);
  const next = document.createElement("template");
  next.innerHTML = html; // rendered and escaped by the server
  for (const details of place.querySelectorAll("details[open]")) {
    next.content.getElementById(details.id)?.setAttribute("open", "");
  }
  if (next.innerHTML !== place.innerHTML) place.replaceChildren(next.content);
}

document.addEventListener("focusout", () => {
  setTimeout(() => postponed.forEach((html, name) => show(name, html)));
});

// The stream of updates. It is closed while the page is hidden: a browser has only six connections to a server.

let source = null;

function listen() {
  source?.close();
  source = new EventSource(study.dataset.events);
  source.onopen = () => showConnection("live");
  source.onmessage = (event) => {
    const { chart: data, ...pieces } = JSON.parse(event.data);
    for (const [name, html] of Object.entries(pieces)) show(name, html);
    showConnection();
    if (data) {
      chart.dataset.chart = JSON.stringify(data);
      draw();
    }
  };
  source.onerror = () => {
    showConnection("connection lost, retrying…");
    if (source.readyState === EventSource.CLOSED) setTimeout(listenIfVisible, RETRY_MILLISECONDS);
  };
  source.addEventListener("gone", () => {
    source.close();
    source = null;
    document.removeEventListener("visibilitychange", listenIfVisible);
    showConnection("this study was deleted, or you are signed out");
  });
}

function listenIfVisible() {
  if (document.hidden) {
    source?.close();
  } else if (source === null || source.readyState === EventSource.CLOSED) {
    listen();
  }
}

let connectionText = "";

function showConnection(text = connectionText) {
  connectionText = text;
  const isOver = document.querySelector('[data-part="state"] .stopped') !== null; // nothing more will happen
  const shown = isOver && text === "live" ? "" : text;
  connection.textContent = shown;
  connection.classList.toggle("live", shown === "live");
}

// The break-even chart.

function draw() {
  if (!window.Plotly) return;
  const data = JSON.parse(chart.dataset.chart);
  chart.dataset.drawn = data.rewards.length;
  if (data.rewards.length < 2) {
    axisSwitch.hidden = true;
    explainChart("The chart appears after two rewards.");
    return;
  }
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const breaksEven = data.loss.some((loss) => loss !== null);
  const currency = data.currency.replace(/[&<>%{}]/g, (character) => `&#${character.charCodeAt(0)};`); // plotly.js reads HTML
  const hasTimes = data.at.every((at) => at !== null);
  const byTime = hasTimes && axisSwitch.querySelector(":checked").value === "at";
  axisSwitch.hidden = !hasTimes;
  const trace = (name, y, colorName, dash = "solid") => ({
    name, x: byTime ? data.at : data.rewards, y, mode: "lines", line: { color: color(colorName), width: 2.5, dash },
    hovertemplate: `%{y:,.4~g} ${currency}`,
  });
  const traces = [trace("Spent", data.spent, "spent")];
  if (breaksEven) traces.unshift(trace("Loss to the strongest rival", data.loss, "loss"));
  traces.unshift(trace("Expected loss against all", data.expected, "loss", "dot"));
  // The scale ignores the first trials, which cost and tell so little that they would squeeze the rest.
  const skipped = Math.floor(data.rewards.length / 20);
  const heights = [data.spent, data.loss, data.expected].flatMap((values) => values.slice(skipped)).filter((height) => height > 0);
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
    xaxis: byTime ? { ...axis, type: "date", title: { text: "time (UTC)" }, nticks: chart.clientWidth < 500 ? 3 : 7, tickangle: 0, automargin: true } : { ...axis, title: { text: "rewards counted" }, rangemode: "tozero" },
    yaxis: { ...axis, title: { text: currency }, tickformat: ",~g", automargin: true, ...(breaksEven ? logarithmic : {}) },
  };
  if (!chart.classList.contains("js-plotly-plot")) chart.replaceChildren();
  Plotly.react(chart, traces, layout, { displayModeBar: false, responsive: true });
}

function explainChart(text) {
  const message = document.createElement("p");
  message.className = "quiet";
  message.textContent = text;
  chart.replaceChildren(message);
}

document.getElementById("plotly").addEventListener("load", draw);
document.getElementById("plotly").addEventListener("error", () => {
  explainChart("The chart could not be loaded.");
});
axisSwitch.addEventListener("change", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("visibilitychange", listenIfVisible);
listenIfVisible();
