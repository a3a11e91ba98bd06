// What a page can do beyond its forms: follow what happens, search while typing,
// move by keys. Nothing of it is needed to read or to act.
"use strict";

(() => {
  const main = document.getElementById("main");
  const keep = (name) => main.querySelector(name);

  // Parts of a page that are replaced when they changed; the rest stays as it is.
  const parts = {
    thread: [".head", ".callout:not(#told)", "#acts", ".path", ".time", ".kin", ".forks", ".git"],
    threads: [".sum", "#list", ".pages"],
  };

  // What tells a fold from the others: where it stands, and what it says.
  function told(details) {
    return `${details.closest("[id]")?.id} ${details.firstElementChild.textContent}`;
  }

  function exchange(fresh, name) {
    const old = keep(name);
    const now = fresh.querySelector(name);
    if (old && now && old.dataset.was !== now.outerHTML && !old.contains(typing())) {
      const was = now.outerHTML;
      if (old.outerHTML === was) return;
      // What a reader has opened stays open.
      const open = [...old.querySelectorAll("details[open]")].map(told);
      for (const each of now.querySelectorAll("details")) {
        if (open.includes(told(each))) each.open = true;
      }
      now.dataset.was = was;
      keepTyped(old, now);
      replace(old, now);
    } else if (old && !now && !old.contains(typing())) {
      old.remove();
    } else if (!old && now) {
      let before = now.previousElementSibling;
      while (before && !same(before)) before = before.previousElementSibling;
      if (before) same(before).after(now); else (same(now.parentElement) || main).prepend(now);
    }
  }

  // Who moves by keys stays where they were, as soon as that is there again.
  let held = null;
  addEventListener("pointerdown", () => { held = null; });
  function replace(old, now) {
    const at = document.activeElement;
    if (old.contains(at)) held = at; else if (at !== document.body) held = null;
    old.replaceWith(now);
    if (!held) return;
    const like = (each) => (held.href ? each.href === held.href : each.name === held.name && each.textContent === held.textContent);
    const again = [...now.querySelectorAll(held.tagName)].find(like);
    if (again) again.focus({ preventScroll: true });
  }

  // What a reader has typed stays typed, wherever it can still be said.
  const typed = new Map();
  function keepTyped(old, now) {
    const fields = (part) => part.querySelectorAll("form :is(input, textarea, select):not([type=hidden])");
    const key = (field) => `${field.form.getAttribute("action")} ${field.name}`;
    const first = (field) => field.defaultValue ?? ([...field.options].find((o) => o.defaultSelected) || field.options[0]).value;
    for (const field of fields(old)) {
      if (field.value === first(field)) typed.delete(key(field)); else typed.set(key(field), field.value);
    }
    for (const field of fields(now)) if (typed.has(key(field))) field.value = typed.get(key(field));
  }

  // What an element of the fresh page is on this one: of the same id, class or title.
  function same(fresh) {
    if (fresh.id) return document.getElementById(fresh.id);
    if (fresh.className) return keep("." + fresh.className.split(" ")[0]);
    const title = (each) => each.querySelector("h2")?.textContent;
    return [...main.querySelectorAll(fresh.tagName)].find((each) => title(each) === title(fresh));
  }

  function typing() {
    const at = document.activeElement;
    return at && at.matches("input, textarea, select") ? at : null;
  }

  function exchangeSteps(fresh) {
    const old = keep("#steps");
    const now = fresh.querySelector("#steps");
    if (!now) return;
    if (!old || !old.querySelector("article")) {
      if (old) old.replaceWith(now); else if (keep(".main")) keep(".main").append(now);
      return;
    }
    const known = new Map([...old.querySelectorAll(":scope > article")].map((a) => [a.id, a]));
    for (const article of [...now.querySelectorAll(":scope > article")]) {
      const mine = known.get(article.id);
      if (!mine) { insert(old, article); continue; }
      if (mine.dataset.was !== article.outerHTML && mine.outerHTML !== article.outerHTML) {
        const open = [...mine.querySelectorAll("details")].map((d) => d.open);
        const was = article.outerHTML;
        article.querySelectorAll("details").forEach((d, n) => { if (open[n]) d.open = true; });
        article.dataset.was = was;
        replace(mine, article);
      }
      known.delete(article.id);
    }
    for (const gone of known.values()) gone.remove();
  }

  function insert(list, article) {
    const number = (a) => Number(a.id.replace(/\D/g, ""));
    const after = [...list.querySelectorAll(":scope > article")].filter((a) => number(a) < number(article)).pop();
    if (after) after.after(article); else list.append(article);
  }

  let asking = 0;
  async function refresh(address) {
    const mine = ++asking;
    let answer;
    try { answer = await fetch(address, { credentials: "same-origin" }); } catch { return mine !== asking; }
    if (!answer.ok || mine !== asking) return answer.status < 500 || mine !== asking;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!fresh || mine !== asking) return true;
    for (const name of parts[main.className] || []) exchange(fresh, name);
    if (main.className === "thread") exchangeSteps(fresh);
    if (fresh.dataset.tip) main.dataset.tip = fresh.dataset.tip;
    return true;
  }

  // A stream of what happens. Its ids are commits: after a break the browser tells the
  // newest it has, and what came since is told first.
  function follow(address) {
    let stream = null, ended = false;
    const tell = (words) => {
      const place = document.getElementById("told") || document.createElement("p");
      place.id = "told";
      place.className = "callout bad";
      place.setAttribute("role", "alert");
      if (place.textContent !== words) place.textContent = words;
      if (!place.isConnected) keep(".head").after(place);
    };
    const open = () => {
      ended = false;
      const since = main.dataset.tip ? `?since=${main.dataset.tip}` : "";
      stream = new EventSource(address + since);
      // What was told must be seen: a line that was cut meanwhile is tried again.
      const again = async () => {
        document.getElementById("told")?.remove();
        if (!await refresh(location.pathname + location.search)) setTimeout(again, 1000);
      };
      for (const name of ["event", "changed", "reset", "running"]) {
        stream.addEventListener(name, () => {
          if (name !== "changed" && name !== "running") clearTurns();
          again();
        });
      }
      stream.addEventListener("turns", (message) => showTurns(JSON.parse(message.data).html));
      stream.addEventListener("end", async () => { stream.close(); ended = true; clearTurns(); await again(); });
      stream.addEventListener("gone", () => { stream.close(); tell("This thread is not here any more."); });
      stream.addEventListener("problem", (message) => tell(JSON.parse(message.data).message));
      stream.addEventListener("error", () => {
        // The browser comes back by itself, unless it was refused outright.
        if (stream.readyState === EventSource.CLOSED) setTimeout(open, 3000);
      });
    };
    open();
    // What has ended may have been taken up again elsewhere.
    addEventListener("focus", () => { if (ended) open(); });
  }

  function showTurns(html) {
    const turns = new DOMParser().parseFromString(html, "text/html").body;
    if (!turns.textContent.trim()) return;
    let place = document.getElementById("now");
    if (!place) {
      place = document.createElement("section");
      place.id = "now";
      const title = document.createElement("h2");
      title.textContent = "Right now";
      place.append(title, document.createElement("div"));
      const steps = keep("#steps");
      if (steps) steps.after(place); else (keep(".main") || main).append(place);
    }
    const atEnd = innerHeight + scrollY > document.body.scrollHeight - 120;
    place.lastElementChild.replaceChildren(...turns.childNodes);
    if (atEnd) scrollTo({ top: document.body.scrollHeight });
  }

  function clearTurns() {
    const place = document.getElementById("now");
    if (place) place.remove();
  }

  function search() {
    const form = keep(".filters");
    if (!form) return;
    const find = form.querySelector("button");
    if (find) find.hidden = true;
    let timer = 0;
    const ask = () => {
      const asked = new URLSearchParams();
      for (const [key, value] of new FormData(form)) if (value && !(key === "sort" && value === "updated")) asked.set(key, value);
      const query = asked.toString();
      history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
      refresh(location.pathname + location.search);
    };
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 90); });
    form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  }

  function keys() {
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (typing()) { if (event.key === "Escape") document.activeElement.blur(); return; }
      if (event.key === "/") {
        const box = document.getElementById("search");
        if (box) { event.preventDefault(); box.focus(); box.select(); }
      } else if (event.key === "j" || event.key === "k") {
        move(event.key === "j" ? 1 : -1);
      } else if (event.key === "u") {
        const up = keep(".crumb a");
        if (up) up.click();
      }
    });
  }

  function move(by) {
    const stops = [...main.querySelectorAll("#list .title, #steps > article .number a")];
    if (!stops.length) return;
    const at = stops.indexOf(document.activeElement);
    const next = stops[Math.min(stops.length - 1, Math.max(0, at + by))] || stops[0];
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "center" });
  }

  // A form is sent once, however often its button is pressed.
  addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "1";
    addEventListener("pageshow", () => delete event.target.dataset.sent, { once: true });
  });

  // The editor: what stands beside the text follows it; a picture's buttons change it.
  function edit() {
    const form = document.getElementById("editor");
    if (!form) return;
    const text = document.getElementById("text");
    let saved = text.value, timer = 0, turn = 0;
    async function send(act, fields) {
      const mine = ++turn, before = text.value;
      const body = new URLSearchParams(fields || new FormData(form));
      body.set("act", act);
      const answer = await fetch(form.action, { method: "POST", body, headers: { "X-Uwf-Part": "1" } }).catch(() => null);
      if (!answer || !answer.ok) {
        const told = answer ? await wordsOf(answer) : "the server does not answer";
        if (mine === turn) complain(`${act === "save" ? "not saved" : "not done"}: ${told}`);
        return;
      }
      if (mine !== turn) return;
      const now = await answer.json();
      if (mine !== turn) return;
      if (act !== "check" && act !== "save" && text.value === before) write(now.text);
      if (act === "save" && now.was !== document.getElementById("was").value) saved = before;
      document.getElementById("was").value = now.was;
      const side = document.getElementById("side");
      const open = [...side.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
      const fresh = new DOMParser().parseFromString(now.side, "text/html").getElementById("side");
      for (const each of fresh.querySelectorAll("details")) {
        if (open.includes(each.firstElementChild.textContent)) each.open = true;
      }
      side.replaceWith(fresh);
    }
    async function wordsOf(answer) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      return (page.querySelector(".callout") || page.body).textContent.trim();
    }
    function complain(words) {
      const line = document.querySelector("#side .said-line");
      line.textContent = words;
      line.className = "said-line bad";
    }
    // As if typed, so that it can be undone.
    function write(value) {
      text.focus();
      text.select();
      if (!document.execCommand("insertText", false, value)) text.value = value;
    }
    text.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => send("check"), 120); });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      send(event.submitter ? event.submitter.value : "check", new FormData(form));
    });
    document.addEventListener("click", (event) => {
      const place = event.target.closest("[data-line]");
      const box = event.target.closest(".graph a");
      if (place) {
        event.preventDefault();
        const lines = text.value.split("\n"), line = Number(place.dataset.line);
        const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
        text.focus();
        text.setSelectionRange(start, start + (lines[line - 1] || "").length);
        text.scrollTop = (line - 6) * (text.scrollHeight / lines.length);
      } else if (box) {
        const role = document.querySelector(box.getAttribute("href"));
        if (role) { event.preventDefault(); role.open = true; role.querySelector("input").focus(); }
      }
    });
    addEventListener("beforeunload", (event) => { if (text.value !== saved) event.preventDefault(); });
    addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); send("save"); }
    });
  }

  search();
  keys();
  edit();
  if (main.dataset.live) follow(main.dataset.live);
})();
