"use strict";

const form = document.getElementById("new");
const state = document.getElementById("plan-state");
const errorMessage = document.getElementById("plan-error");
const perDay = document.getElementById("per_day"); // of the plan only, so not in the form
const result = document.getElementById("plan-result");
const TYPING_MILLISECONDS = 500; // a plan is made once nobody has typed for so long
const LABELS = new Map(JSON.parse(form.dataset.planLabels)); // by policy, in the order of the columns
const POLICY = form.dataset.planPolicy; // shown in full; of the others, only the total loss
const FIELDS = JSON.parse(form.dataset.labels); // what the form calls the options
const SPREADS = ["baseline", "binary", "sigma", "bounds"];
const MAX_ARMS = Number(form.dataset.maxPlannedArms);

const HINT =
  "The gap is the best arm's lead over the others. Total loss is spending plus the expected loss of a wrong choice; " +
  "the lowest is bold. ± is the error of a simulated figure, two standard errors, in percent of it; < marks a limit " +
  "where the runs do not show the figure. Runs are those that a row rests on; runs at other gaps count by what they " +
  "say about it. The best fixed size is told the gap.";

const CONTROL_HINT = "At a negative gap the control is better than all others by that much.";

const NO_SPREAD =
  "The study can learn the spread of its rewards, but a plan needs a guess: state one in the form to see it.";

const COLUMNS = [["Trials", "observations"], ["Spend", "spend"], ["Wrong", "wrong"], ["Runs", "runs"]];

const NUMBERS = ["price", "value", "baseline", "low", "high", "sigma", "sigma_pulls", "not_before"];
const NO_COMMAS = "use a decimal point, and no commas between thousands.";

const LEFT_OUT = "–"; // the advice says why

const text = (name) => form.elements[name]?.value.trim() ?? "";
// A text stays what it is, as JSON has no NaN: the server says what is wrong with it.
const toNumber = (typed) => (Number.isNaN(Number(typed)) ? typed : Number(typed));
const number = (name) => (text(name) === "" ? null : Number(text(name)));

// The planner's options, or null while something is missing.
function readOptions() {
  const arms = text("arms").split("\n").map((line) => line.trim()).filter(Boolean);
  const prices = readPrices(arms);
  const body = {
    arms: arms.length, price: prices?.length === 1 ? prices[0] : prices, value: number("value"), risk: text("risk"),
    ...readSpread(),
  };
  if (perDay.value.trim()) body.per_day = toNumber(perDay.value.trim());
  const isComplete = prices?.length && body.value !== null && SPREADS.some((name) => (body[name] ?? null) !== null);
  if (text("currency")) body.currency = text("currency");
  if (text("control")) Object.assign(body, { arms, control: text("control") });
  if (text("not_before")) body.not_before = toNumber(text("not_before"));
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

function element(name, content, className) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...[content].flat());
  return node;
}

function totalLoss(row) {
  if (!row) return element("td", LEFT_OUT, "figure");
  const cell = element("td", row.shown.total_loss, row.is_lowest ? "figure best" : "figure");
  cell.title = row.runs ? `${row.shown.runs} runs` : "exact";
  return cell;
}

// The gap, negative where the control is the best arm.
const signedGap = (cell) => (cell.control_is_best ? -cell.gap : cell.gap);
// From the smallest gap to the largest, first those at which another arm is better than the control.
const compareGaps = (one, other) => Math.sign(other) - Math.sign(one) || Math.abs(one) - Math.abs(other);

function render(plan) {
  const cells = [...plan.rows, ...plan.omissions];
  const policies = [...LABELS.keys()].filter((name) => cells.some((cell) => cell.policy === name));
  const gaps = [...new Set(cells.map(signedGap))].sort(compareGaps);
  const find = (gap, policy) => plan.rows.find((row) => signedGap(row) === gap && row.policy === policy);
  const columns = plan.per_day === null ? COLUMNS : [...COLUMNS, ["Days", "days"]];
  const label = (name) => plan.rows.find((row) => row.policy === name)?.label ?? LABELS.get(name);
  const losses = makeTable(
    `Total loss, ${text("currency") || "in money"}`, policies.map(label), gaps,
    (gap) => policies.map((name) => totalLoss(find(gap, name))),
  );
  const figures = makeTable(
    "Means over the runs", columns.map(([title]) => title), gaps,
    (gap) => columns.map(([, name]) => element("td", find(gap, POLICY)?.shown[name] ?? LEFT_OUT, "figure")),
  );
  const details = element("details", [element("summary", `What ${LABELS.get(POLICY)} would do`), figures]);
  details.open = result.querySelector("details")?.open ?? false;
  const leftOut = Object.entries(plan.left_out).map(([name, why]) => {
    const where = plan.rows.some((row) => row.policy === name) ? " at some gaps" : "";
    return `${LABELS.get(name) ?? name} is left out${where}: ${why}.`;
  });
  return [
    element("ul", [...plan.advice, ...leftOut].map((sentence) => element("li", sentence)), "advice"),
    losses,
    details,
    element("p", gaps.some((gap) => gap < 0) ? `${HINT} ${CONTROL_HINT}` : HINT, "hint"),
  ];
}

// A table with a row by gap; on a phone, each row is a card.
function makeTable(caption, titles, gaps, makeCells) {
  const capitals = titles.map((title) => title[0].toUpperCase() + title.slice(1));
  const rows = gaps.map((gap) => {
    const head = element("th", String(Number(gap.toPrecision(3))), "figure");
    head.scope = "row";
    const cells = makeCells(gap);
    cells.forEach((cell, place) => (cell.dataset.label = capitals[place]));
    return element("tr", [head, ...cells]);
  });
  return element("table", [
    element("caption", caption),
    element("thead", element("tr", ["Gap", ...capitals].map((title) => element("th", title, "figure")))),
    element("tbody", rows),
  ], "cards");
}

// The first number with a comma, which is a decimal point in some countries and separates thousands in others.
function findComma() {
  const fields = [...NUMBERS.map((name) => form.elements[name]), perDay];
  const wrong = fields.find((field) => /^[-+]?[\d.]*(,\d+)+[\d.]*$/.test(field.value.trim()));
  return wrong && `${FIELDS[wrong.id]} must be a number but got '${wrong.value.trim()}'; ${NO_COMMAS}`;
}

let request = null;

async function plan() {
  request?.abort();
  const comma = findComma();
  const body = comma ? null : readOptions();
  showError(comma ?? "");
  if (body === null) {
    state.textContent = "";
    if (comma) result.replaceChildren();
    else if (text("rewards") === "unknown") result.replaceChildren(element("p", NO_SPREAD, "quiet"));
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
  "arms", "price", "value", "currency", "risk", "rewards", "baseline", "low", "high", "sigma", "sigma_pulls", "control",
  "not_before",
];
let timer;
function planSoon() {
  clearTimeout(timer);
  timer = setTimeout(plan, TYPING_MILLISECONDS);
}
form.addEventListener("input", (event) => {
  if (PLAN_FIELDS.includes(event.target.name)) planSoon();
});
perDay.addEventListener("input", planSoon);
plan();
