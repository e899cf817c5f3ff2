// The console: what the service says, for people. It holds the key of this tab and asks the addresses that programs ask.

const KEY = "secretballot-key";
const ROWS_AT_ONCE = 500;
const $ = (id) => document.getElementById(id);
const state = { key: null, me: null, datasets: [], dataset: null, session: null, answers: [], auditAfter: 0 };

// --- making elements: text is always text, never markup ---

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "line", "path", "text"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children.flat()) element.append(child);
  return element;
}

function table(caption, head, rows) {
  const body = rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, cell instanceof Node ? cell : String(cell ?? "")))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, head.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, body)));
}

function terms(pairs) {
  return make("dl", {}, pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
}

// what is rounded is rounded so that less is never shown as spent, nor more as left
const number = (value) => (value < 1e-3 ? value.toExponential(3) : value.toPrecision(4)).replace(/\.?0+($|e)/, "$1");
const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const up = (value) => rounded(value, Math.ceil), down = (value) => rounded(value, Math.floor);
function rounded(value, towards) {
  if (!(value > 0)) return "0";
  const unit = 10 ** (Math.floor(Math.log10(value)) - 3);
  const near = towards(value / unit - (towards === Math.ceil ? 1e-9 : -1e-9)) * unit;
  return number(near);
}

// --- asking the service ---

class Problem extends Error {}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { Authorization: `Bearer ${state.key}`, ...options.headers }, cache: "no-store" });
  } catch {
    throw new Problem("The service cannot be reached; try again in a while.");
  }
  if (response.ok) return response;
  let detail = `The service answers with status ${response.status}.`;
  try { detail = (await response.json()).detail || detail; } catch { /* no document came with it */ }
  const problem = new Problem(detail);
  problem.status = response.status;
  throw problem;
}

const json = async (path, options) => (await request(path, options)).json();
const here = () => `v1/datasets/${encodeURIComponent(state.dataset.name)}`;
const session = () => `${here()}/sessions/${encodeURIComponent(state.session.session)}`;

function tell(problem) {
  $("problem").textContent = problem ? problem.message : "";
  $("problem").hidden = !problem;
}

// run work of a button or form: it cannot be started twice, and what goes wrong is told
function doing(element, work) {
  return async (event) => {
    event.preventDefault();
    const held = document.activeElement;
    const buttons = element.matches("form") ? element.querySelectorAll("button") : [element];
    buttons.forEach((button) => { button.disabled = true; });
    tell(null);
    try { await work(); } catch (error) {
      if (!(error instanceof Problem)) throw error;
      tell(error);
    } finally {
      buttons.forEach((button) => { button.disabled = false; });
      // a button that cannot be pressed loses the focus, and a keyboard its place
      if (document.activeElement === document.body && held.isConnected) held.focus({ preventScroll: true });
    }
  };
}

function save(content, name, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// --- signing in ---

async function signIn(key) {
  state.key = key;
  state.me = await json("v1/key");
  state.datasets = (await json("v1/datasets")).datasets;
  sessionStorage.setItem(KEY, key);
  $("owner").textContent = `${state.me.owner || state.me.id}, ${state.me.role}`;
  $("dataset").replaceChildren(...state.datasets.map((one) => make("option", { value: one.name }, one.title)));
  $("sign-in").hidden = true;
  $("who").hidden = $("signed-in").hidden = false;
  if (!state.datasets.length) throw new Problem("This key is for no dataset of this service.");
  await showDataset(state.datasets[0].name);
  $("main").focus();
}

function signOut() {
  sessionStorage.removeItem(KEY);
  location.reload();
}

const oversees = () => state.me.role === "curator" || state.me.role === "auditor";

async function showDataset(name) {
  state.dataset = state.datasets.find((one) => one.name === name);
  state.answers = [];
  $("title").textContent = state.dataset.title;
  $("session").replaceChildren(...state.dataset.sessions.map((one) => make("option", { value: one }, one)));
  $("ask").hidden = state.me.role === "auditor";
  await Promise.all([showBudget(), showSession(state.dataset.sessions[0]), showAudit(true)]);
}

// --- the budget ---

async function showBudget() {
  const budget = await json(`${here()}/budget`);
  const parts = [budgetBar(budget), terms([
    ["May be spent", `epsilon ${down(budget.budget.epsilon)}, delta ${down(budget.budget.delta)}, for each ${budget.unit} (${budget.relation})`],
    ["Spent or reserved", `epsilon ${up(budget.spent.epsilon)}, delta ${up(budget.spent.delta)}, in ${several(budget.releases, "release")}`],
    ["Left", `epsilon ${down(budget.remaining.epsilon)}, delta ${down(budget.remaining.delta)}`],
  ])];
  $("account-section").hidden = !oversees();
  if (oversees()) {
    const account = await json(`${here()}/account`);
    parts.splice(1, 0, budgetCurve(account.entries, budget.budget.epsilon));
    $("account").replaceChildren(
      table(`${several(account.entries.length, "reservation")}, oldest first; the chain ends in ${account.chain.slice(0, 12)}...`,
        ["Number", "Request", "Purpose", "Epsilon", "Delta", "State", "Reserved", "Answers"],
        account.entries.map((one) => [one.id, one.request, one.purpose, up(one.epsilon), up(one.delta), one.state, moment(one.reserved_at), one.parts])));
  }
  $("budget").replaceChildren(...parts);
}

const moment = (text) => (text ? text.slice(0, 16).replace("T", " ") : "");

function bar(share, words, attributes = {}) {
  const filled = make("span", { class: "spent" });
  filled.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return make("div", attributes, make("div", { class: "bar", "aria-hidden": "true" }, filled), make("p", { class: "of-bar" }, words));
}

function budgetBar(budget) {
  return bar(budget.spent.epsilon / budget.budget.epsilon, `epsilon ${up(budget.spent.epsilon)} of ${down(budget.budget.epsilon)} is spent or reserved`);
}

// epsilon over time, in steps; where releases compose, the sum of their prices is the most that is spent
function budgetCurve(entries, limit) {
  const kept = entries.filter((one) => one.reserved_at);
  if (!kept.length) return make("p", { class: "hint" }, "Nothing was reserved yet.");
  const [left, right, top, bottom] = [56, 588, 14, 132];
  const times = kept.map((one) => Date.parse(one.reserved_at)), first = times[0], last = Math.max(Date.now(), times.at(-1) + 1);
  const total = kept.reduce((sum, one) => sum + one.epsilon, 0), most = Math.max(limit, total) * 1.08;
  const x = (time) => left + (right - left) * (time - first) / (last - first), y = (value) => bottom - (bottom - top) * value / most;
  let spent = 0, path = `M ${x(first)} ${y(0)}`;
  kept.forEach((one, place) => {
    path += ` H ${x(times[place])}`;
    spent += one.epsilon;
    path += ` V ${y(spent)}`;
  });
  path += ` H ${x(last)}`;
  const words = `Sum of epsilon from ${moment(kept[0].reserved_at)} until now: ${up(spent)} of ${down(limit)}`;
  const picture = make("svg", { viewBox: "0 0 600 160", role: "img", "aria-label": words },
    make("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
    make("line", { x1: left, x2: right, y1: y(limit), y2: y(limit), class: "limit" }),
    make("text", { x: 0, y: y(limit) + 4 }, down(limit)),
    make("text", { x: 0, y: bottom + 4 }, "0"),
    make("path", { d: path, class: "curve" }),
    make("text", { x: left, y: bottom + 20 }, moment(kept[0].reserved_at)),
    make("text", { x: right, y: bottom + 20, "text-anchor": "end" }, "now"));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Epsilon over time" }, picture);
}

// --- a session ---

async function showSession(name) {
  const one = await showTerms(name);
  $("fields").replaceChildren(...columnsOf(one).map((column, place) => make("div", {}, make("label", { for: `field-${place}` }, column.name), fieldOf(column, `field-${place}`))));
  $("answered").textContent = "";
  forgetPreview();
  showAnswers();
}

function forgetPreview() {
  state.previewed = null;
  $("preview").textContent = "";
  $("confirm").hidden = true;
}

// known categories are chosen, so that none is misspelt
function fieldOf({ name, numeric, categories }, id) {
  if (!categories) return make("input", { id, name, autocomplete: "off", ...(numeric ? { inputmode: "decimal" } : {}) });
  return make("select", { id, name }, make("option", { value: "" }, "(missing)"), categories.map((one) => make("option", { value: one }, one)));
}

async function showTerms(name) {
  state.session = await json(`${here()}/sessions/${encodeURIComponent(name)}`);
  const one = state.session;
  $("terms").replaceChildren(questionsBar(one), terms([
    ["Classes", one.classes.join(", ")],
    ["Answers", `by ${one.n_teachers} teachers, ${one.mechanism.kind}, ${one.mechanism.release || "labels"}`],
    ["Price of all answers", `epsilon ${up(one.price.epsilon)}, delta ${up(one.price.delta)}, reserved beforehand`],
  ]));
  $("price").textContent = `A new question takes one of the ${one.left} that are left and paid for; a point that was asked before is free.`;
  $("checks").replaceChildren(); // they were about other answers
  return one;
}

function questionsBar(one) {
  const words = one.closed ? "The session is closed" : `${one.left} of ${several(one.planned, "question")} are left`;
  return bar((one.planned - one.left) / one.planned, words, { id: "questions-left" });
}

function columnsOf(one) {
  const { kind, columns, dtype } = one.columns;
  if (kind === "frame") return columns.map(([name, type, more]) => ({ name: String(name), numeric: /int|float/i.test(type), categories: more?.[0].map(String) }));
  return Array.from({ length: columns }, (_, place) => ({ name: `value ${place + 1}`, numeric: dtype !== "object" }));
}

// cells as the teachers read them: a number where one is due, null where nothing is written
function pointOf(cells) {
  const columns = columnsOf(state.session);
  const values = columns.map(({ name, numeric }, place) => {
    const text = cells[place].trim();
    if (!numeric) return text;
    if (text === "") return null;
    const value = Number(text);
    if (!Number.isFinite(value)) throw new Problem(`${JSON.stringify(text.slice(0, 40))} in ${name} is no number; write it with a decimal point.`);
    return value;
  });
  return state.session.columns.kind === "frame" ? Object.fromEntries(columns.map(({ name }, place) => [name, values[place]])) : values;
}

const post = (what, points) => json(`${session()}/${what}`, { method: "POST", body: JSON.stringify({ points }), headers: { "Content-Type": "application/json" } });

// what a file would take is shown, and asked once that is confirmed
async function previewRows(rows) {
  const points = rows.map(pointOf), size = Math.min(ROWS_AT_ONCE, state.session.most_points);
  let stored = 0, added = 0, left = state.session.left;
  for (let start = 0; start < points.length; start += size) {
    const found = await post("preview", points.slice(start, start + size));
    stored += found.stored; added += found.new; left = found.left;
  }
  state.previewed = rows;
  $("preview").textContent = `${several(points.length, "row")}: ${stored} answered before, ${several(added, "new question")}; ${left} left.`;
  $("confirm").textContent = added ? `Ask ${several(added, "new question")}` : "Show the answers";
  $("confirm").hidden = false;
}

async function askRows(rows) {
  const points = rows.map(pointOf), size = Math.min(ROWS_AT_ONCE, state.session.most_points);
  let asked = 0, given = 0;
  try {
    for (let start = 0; start < points.length; start += size) {
      const found = await post("questions", points.slice(start, start + size));
      found.answers.forEach((answer, place) => state.answers.push({ cells: rows[start + place], ...answer }));
      given += found.answers.filter((answer) => answer.given).length;
      asked += found.answers.length;
      $("progress").value = asked / points.length;
    }
  } finally {
    // answers that came are shown, whatever happened after them
    await Promise.all([showTerms(state.session.session), showAudit(true)]);
    showAnswers();
    $("answered").textContent = `${given} of ${several(points.length, "question")} answered; ${state.session.left} left.`;
  }
}

function showAnswers() {
  if (!state.answers.length) return $("answers").replaceChildren();
  const columns = columnsOf(state.session), shown = state.answers.slice(-100).reverse();
  const button = make("button", { type: "button" }, "Download these answers");
  button.addEventListener("click", () => saveAnswers(columns));
  $("answers").replaceChildren(
    table(`${state.answers.length === shown.length ? "Answers" : `The last ${shown.length} of ${state.answers.length} answers`} of this tab, newest first`,
      [...columns.map((one) => one.name), "answer"], shown.map((one) => [...one.cells, wordsOf(one)])), button);
}

const wordsOf = (one) => (!one.given ? "not asked: no question is left" : one.abstained ? "abstained" : one.noisy_count === null ? String(one.label) : `${one.label} (noisy count ${[one.noisy_count].flat().join(", ")})`);

function saveAnswers(columns) {
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const lines = [[...columns.map((one) => one.name), "label", "given", "abstained"], ...state.answers.map((one) => [...one.cells, one.label ?? "", one.given, one.abstained])];
  save(lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n", "answers.csv", "text/csv");
}

// records of a CSV text; quoted fields may hold commas, quotation marks and line ends
function recordsOf(text) {
  const records = [];
  let record = [], field = "", quoted = false;
  for (let place = text.charCodeAt(0) === 0xfeff ? 1 : 0; place < text.length; place += 1) {
    const sign = text[place];
    if (quoted) {
      if (sign !== '"') field += sign;
      else if (text[place + 1] === '"') { field += '"'; place += 1; } else quoted = false;
    } else if (sign === '"' && field === "") quoted = true;
    else if (sign === ",") { record.push(field); field = ""; } else if (sign === "\n") {
      record.push(field.replace(/\r$/, ""));
      if (record.length > 1 || record[0] !== "") records.push(record);
      record = []; field = "";
    } else field += sign;
  }
  if (quoted) throw new Problem("A quotation mark in the file is not closed.");
  if (field !== "" || record.length) records.push([...record, field.replace(/\r$/, "")]);
  return records;
}

function rowsOf(text) {
  const [head, ...records] = recordsOf(text), columns = columnsOf(state.session);
  if (!head || !records.length) throw new Problem("The file has no rows below its first line.");
  const names = head.map((name) => name.trim());
  const byName = state.session.columns.kind === "frame";
  const places = columns.map(({ name }, place) => (byName ? names.indexOf(name) : place));
  const missing = columns.filter((_, place) => places[place] < 0 || places[place] >= names.length);
  if (missing.length) throw new Problem(`The file lacks the column ${missing.map((one) => one.name).slice(0, 5).join(", ")}.`);
  const odd = records.findIndex((record) => record.length !== names.length);
  if (odd >= 0) throw new Problem(`Row ${odd + 1} has ${records[odd].length} fields and the first line has ${names.length}.`);
  return records.map((record) => places.map((place) => record[place]));
}

// --- certificates, audit log ---

async function verify() {
  const found = await json(`${session()}/verification`);
  const signed = found.signed_by ? `Downloaded, it is signed by this service with the key ${found.signed_by}.` : "This service signs no certificates.";
  $("checks").replaceChildren(
    make("p", { class: `verdict ${found.ok ? "ok" : "bad"}` }, found.ok ? "The certificate verifies." : "The certificate does NOT verify."),
    make("ul", { class: "checks" }, found.checks.map((check) => make("li", {},
      make("span", { class: check.ok ? "ok" : "bad" }, check.ok ? "ok " : "FAILED "), make("strong", {}, check.name), `: ${check.detail}`))),
    make("p", { class: "hint" }, signed));
}

// the signature is of the very bytes that came, so both are saved together
async function saveCertificate() {
  const response = await request(`${session()}/certificate`), signature = response.headers.get("Certificate-Signature");
  save(await response.arrayBuffer(), "certificate.json", "application/json");
  if (signature) save(Uint8Array.from(atob(signature), (sign) => sign.charCodeAt(0)), "certificate.sig", "application/octet-stream");
}

async function showAudit(anew) {
  $("audit-section").hidden = !oversees();
  if (!oversees()) return;
  if (anew) { state.auditAfter = 0; state.audit = []; }
  const found = await json(`${here()}/audit?after=${state.auditAfter}&most=100`);
  state.audit.push(...found.rows);
  state.auditAfter = found.next_after ?? state.auditAfter;
  $("more-audit").hidden = found.next_after === null;
  $("audit").replaceChildren(table(`${state.audit.length} of its rows, oldest first`,
    ["Time", "Key", "Action", "Session", "Points", "New questions", "Outcome"],
    state.audit.map((row) => [moment(row.at), row.key, row.action, row.session, row.points, row.new, row.outcome])));
}

// --- what is pressed ---

$("key-form").addEventListener("submit", doing($("key-form"), () => signIn($("key").value.trim())));
$("sign-out").addEventListener("click", signOut);
$("dataset").addEventListener("change", doing($("dataset"), () => showDataset($("dataset").value)));
$("session").addEventListener("change", doing($("session"), () => { state.answers = []; return showSession($("session").value); }));
$("by-hand").addEventListener("submit", doing($("by-hand"), () => askRows([[...$("fields").querySelectorAll("input, select")].map((one) => one.value)])));
$("by-file").addEventListener("submit", doing($("by-file"), async () => previewRows(rowsOf(await $("file").files[0].text()))));
$("file").addEventListener("change", forgetPreview);
$("confirm").addEventListener("click", doing($("confirm"), async () => {
  const rows = state.previewed;
  forgetPreview();
  $("progress").hidden = false;
  $("progress").value = 0;
  try { await askRows(rows); } finally { $("progress").hidden = true; }
}));
$("verify").addEventListener("click", doing($("verify"), verify));
$("certificate").addEventListener("click", doing($("certificate"), saveCertificate));
$("released").addEventListener("click", doing($("released"), async () => save(await (await request(`${session()}/released`)).text(), "released.json", "application/json")));
$("more-audit").addEventListener("click", doing($("more-audit"), () => showAudit(false)));

const known = sessionStorage.getItem(KEY);
if (known) signIn(known).catch((problem) => { if (problem.status === 401) sessionStorage.removeItem(KEY); tell(problem); });
