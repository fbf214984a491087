"use strict";

const form = document.getElementById("new");
const state = document.getElementById("plan-state");
const errorMessage = document.getElementById("plan-error");
const result = document.getElementById("plan-result");
const TYPING_MILLISECONDS = 500; // a plan is made once nobody has typed for so long
const LABELS = new Map(JSON.parse(form.dataset.planLabels)); // by policy, in the order of the columns
const POLICY = form.dataset.planPolicy; // shown in full; of the others, only the total loss
const FIELDS = JSON.parse(form.dataset.labels); // what the form calls the options
const SPREADS = ["baseline", "binary", "sigma", "bounds"];
const MAX_ARMS = Number(form.dataset.maxPlannedArms);

const HINT =
  "The gap is the best arm's lead over the others. Total loss is spending plus the expected loss of a wrong choice; " +
  "the lowest is bold.";

const NO_SPREAD =
  "The study can learn the spread of its rewards, but a plan needs a guess: state one in the form to see it.";

const LEFT_OUT = "–"; // the advice says why

const text = (name) => form.elements[name].value.trim();
const number = (name) => (text(name) === "" ? null : Number(text(name)));

// The planner's options, or null while something is missing.
function readOptions() {
  const arms = text("arms").split("\n").map((line) => line.trim()).filter(Boolean);
  const prices = readPrices(arms);
  const body = {
    arms: arms.length, price: prices?.length === 1 ? prices[0] : prices, value: number("value"), risk: text("risk"),
    ...readSpread(),
  };
  const isComplete = prices?.length && body.value !== null && SPREADS.some((name) => (body[name] ?? null) !== null);
  return arms.length >= 2 && arms.length <= MAX_ARMS && isComplete ? body : null;
}

// One price, or one per arm in their order, also if they were typed by name, such as A=0.4, B=2.
function readPrices(arms) {
  const typed = text("price");
  if (!typed.includes("=")) return typed.split(/[\s;]+/).filter(Boolean).map(Number);
  const pairs = [...typed.matchAll(/\s*(.*?)\s*=\s*([^,;=]*?)\s*(?:[,;]|$)/g)];
  const byName = new Map(pairs.map(([, name, amount]) => [name, Number(amount)]));
  return arms.every((name) => byName.has(name)) ? arms.map((name) => byName.get(name)) : null;
}

// The spread of the rewards as the study will be told; nothing while it is missing or unknown.
function readSpread() {
  const way = text("rewards");
  const spread = {};
  const weight = text("sigma_pulls");
  if (weight) spread.sigma_pulls = /^\+?inf(inity)?$/i.test(weight) ? "inf" : Number(weight);
  if (way === "baseline" || way === "sigma") spread[way] = number(way);
  if (way === "binary") spread.binary = true;
  if (way === "bounds" && text("low") && text("high")) {
    spread.bounds = [number("low"), number("high")];
    if (text("sigma")) spread.sigma = number("sigma");
  }
  return spread;
}

// Amounts as the rest of the dashboard shows them.
function money(amount) {
  const size = Math.abs(amount);
  if (size < 0.9995) return String(Number(amount.toPrecision(3)));
  const digits = size >= 999.995 ? 0 : 2;
  return amount.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function element(name, content, className) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...[content].flat());
  return node;
}

function render(plan) {
  const cells = [...plan.rows, ...plan.omissions];
  const policies = [...LABELS.keys()].filter((name) => cells.some((cell) => cell.policy === name));
  const gaps = [...new Set(cells.map((cell) => cell.gap))].sort((one, other) => one - other);
  const find = (gap, policy) => plan.rows.find((row) => row.gap === gap && row.policy === policy);
  const head = ["Gap", "Trials", "Spend", "Wrong", ...policies.map((name) => LABELS.get(name))];
  const rows = gaps.map((gap) => {
    const full = find(gap, POLICY);
    const figures = full
      ? [Math.round(full.observations).toLocaleString("en"), money(full.spend), `${(100 * full.chance_wrong).toFixed(1)}%`]
      : [LEFT_OUT, LEFT_OUT, LEFT_OUT];
    const losses = policies.map((name) => find(gap, name)?.total_loss);
    // None is bold where a policy took too much work to compare.
    const compared = plan.omissions.some((omission) => omission.gap === gap) ? [] : losses;
    const lowest = Math.min(...compared.filter((loss) => loss !== undefined));
    return element("tr", [
      element("th", String(Number(gap.toPrecision(3))), "figure"),
      ...figures.map((figure) => element("td", figure, "figure")),
      ...losses.map((loss) =>
        element("td", loss === undefined ? LEFT_OUT : money(loss), loss === lowest ? "figure best" : "figure")),
    ]);
  });
  const group = (label, columns) => {
    const cell = element("th", label);
    cell.colSpan = columns;
    return cell;
  };
  const unit = text("unit") || "in money";
  const table = element("table", [
    element("thead", [
      element("tr", [element("td", ""), group(LABELS.get(POLICY), 3), group(`Total loss, ${unit}`, policies.length)], "groups"),
      element("tr", head.map((label) => element("th", label, "figure"))),
    ]),
    element("tbody", rows),
  ]);
  const leftOut = Object.entries(plan.left_out).map(([name, why]) => {
    const where = plan.rows.some((row) => row.policy === name) ? " at some gaps" : "";
    return `${LABELS.get(name) ?? name} is left out${where}: ${why}.`;
  });
  const scroll = element("div", table, "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Plan by gap");
  return [
    element("ul", [...plan.advice, ...leftOut].map((sentence) => element("li", sentence)), "advice"),
    scroll,
    element("p", HINT, "hint"),
  ];
}

let request = null;

async function plan() {
  request?.abort();
  const body = readOptions();
  showError("");
  if (body === null) {
    state.textContent = "";
    if (text("rewards") === "unknown") result.replaceChildren(element("p", NO_SPREAD, "quiet"));
    return;
  }
  const controller = (request = new AbortController());
  state.textContent = "computing…";
  try {
    const headers = { "Content-Type": "application/json" };
    if (form.dataset.token) headers["X-CSRF-Token"] = form.dataset.token;
    const response = await fetch("/v1/plan", { method: "POST", headers, body: JSON.stringify(body), signal: controller.signal });
    const content = await response.json();
    if (!response.ok) throw new Error(nameFields(content.detail));
    result.replaceChildren(...render(content));
  } catch (error) {
    if (error.name === "AbortError") return; // a newer request replaces this one
    result.replaceChildren();
    showError(error.message);
  }
  if (controller === request) state.textContent = "";
}

// Messages name options between backticks, or before "=".
function nameFields(message) {
  return message
    .replace(/`([^`]+)`/g, (quoted, inner) => {
      const named = inner.replace(/[A-Za-z_]\w*/g, (word) => FIELDS[word] ?? word);
      return named === inner ? quoted : named;
    })
    .replace(/\b([A-Za-z_]\w*)=/g, (assigned, word) => (word in FIELDS ? `${FIELDS[word]} ` : assigned));
}

function showError(message) {
  errorMessage.textContent = message;
  errorMessage.hidden = message === "";
}

const PLAN_FIELDS = [
  "arms", "price", "value", "unit", "risk", "rewards", "baseline", "low", "high", "sigma", "sigma_pulls",
];
let timer;
form.addEventListener("input", (event) => {
  if (!PLAN_FIELDS.includes(event.target.name)) return;
  clearTimeout(timer);
  timer = setTimeout(plan, TYPING_MILLISECONDS);
});
plan();
