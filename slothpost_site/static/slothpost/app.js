// Makes pages quicker where JavaScript runs; every page works without it.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => {
    const live = document.getElementById("say");
    if (live) live.textContent = text;
  };

  // -- length of a text, as its outlet counts it: the server counts, so that both always agree --
  const waiting = new WeakMap();
  const count = async (area) => {
    if (!area.isConnected) return;
    const counter = document.getElementById(area.dataset.counter);
    waiting.get(area)?.abort();
    const control = new AbortController();
    waiting.set(area, control);
    const body = new FormData();
    body.set("outlet", area.dataset.outlet);
    body.set("text", area.value);
    body.set("csrfmiddlewaretoken", area.form.elements.csrfmiddlewaretoken.value);
    try {
      const answer = await fetch(area.dataset.countUrl, { method: "POST", body, signal: control.signal });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const { length, limit } = await answer.json();
      const over = length > limit;
      const unit = counter.dataset.unit;
      counter.textContent = `${length} / ${limit} ${unit}` + (over ? `, ${length - limit} too many` : "");
      if (over !== counter.classList.contains("is-over")) {
        say(over ? `Too long by ${length - limit} ${unit}.` : "The text fits again.");
      }
      counter.classList.toggle("is-over", over);
    } catch (error) {
      if (error.name !== "AbortError") counter.textContent = "Cannot count right now; saving still checks the length.";
    }
  };
  const timers = new WeakMap();
  const countSoon = (area) => {
    clearTimeout(timers.get(area));
    timers.set(area, setTimeout(count, 250, area));
  };

  // -- unsaved edits ------------------------------------------------------------------------------
  const changed = (field) =>
    field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.tagName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected)
    : "defaultValue" in field && field.type !== "hidden" && field.value !== field.defaultValue;
  const dirty = (part) => all("input, select, textarea", part).some(changed);
  const markDirty = (part) => {
    const isDirty = all("textarea", part).some(changed);
    part.classList.toggle("is-dirty", isDirty);
    for (const button of all("[data-dirty-label]", part)) {
      const label = button.querySelector("span");
      label.dataset.label ??= label.textContent;
      label.textContent = isDirty ? button.dataset.dirtyLabel : label.dataset.label;
    }
  };
  let leaving = false;
  addEventListener("beforeunload", (event) => {
    if (!leaving && all("form[data-guard]").some(dirty)) event.preventDefault();
  });
  document.addEventListener("submit", (event) => { if (!event.defaultPrevented) leaving = true; });
  addEventListener("pageshow", () => { leaving = false; });

  document.addEventListener("input", (event) => {
    const field = event.target;
    if (field.dataset.counter) countSoon(field);
    const draft = field.closest(".draft");
    if (draft) markDirty(draft);
    if (field.tagName === "TEXTAREA") fit(field);
    if (field.type === "time") {
      field.classList.toggle("is-off", !field.value);
      const outlet = field.closest(".outlet");
      const times = all("input", outlet).filter((input) => input.value).length;
      outlet.querySelector("[data-count]").textContent = times ? `${times} a week` : "Off";
    }
  });

  // A text area as tall as its text, where the style sheet alone cannot do it.
  const fits = CSS.supports("field-sizing", "content");
  const fit = (area) => {
    if (fits) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
  };

  // -- one more time in a day of the plan, copy, close a menu ---------------------------------------
  document.addEventListener("click", async (event) => {
    for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.add !== undefined) {
      const last = all("input", button.parentElement).at(-1);
      const next = last.cloneNode();
      next.removeAttribute("id");
      next.value = next.defaultValue = "";
      next.className = "is-off";
      last.after(next);
      next.focus();
    }
    if (button.dataset.zone) {
      const select = document.querySelector("select[data-browser-zone]");
      select.value = button.dataset.zone;
      select.dispatchEvent(new Event("change", { bubbles: true }));
      button.closest("[data-zone-hint]").hidden = true;
      select.focus();
    }
    if (button.dataset.copy) {
      const source = document.getElementById(button.dataset.copy);
      await navigator.clipboard.writeText(source.value ?? source.textContent.trim());
      const label = button.querySelector("span");
      label.dataset.label ??= label.textContent;
      label.textContent = "Copied";
      say("Copied.");
      setTimeout(() => { label.textContent = label.dataset.label; }, 2000);
    }
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest?.("details.menu[open], details.fold[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  // -- the browser's time zone: a preset for a new plan, a hint beside a saved one --------------------
  const zones = (within) => {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const select of all("select[data-browser-zone]", within)) {
      const options = [...select.options];
      if (select.value === zone || !options.some((option) => option.value === zone)) continue;
      if (select.dataset.browserZone === "preset") {
        for (const option of options) option.selected = option.defaultSelected = option.value === zone;
        continue;
      }
      const hint = document.querySelector("[data-zone-hint]");
      hint.hidden = false;
      hint.querySelector("[data-zone-name]").textContent = zone;
      hint.querySelector("button").dataset.zone = zone;
    }
  };

  const dress = (within) => {
    all("[data-js]", within).forEach((element) => { element.hidden = false; });
    all("textarea", within).forEach(fit);
    zones(within);
  };
  dress(document);
  document.querySelector("[data-focus]")?.focus();

  // How many texts wait, in the heading of the queue, after one was decided.
  const recount = () => {
    const heading = document.querySelector("[data-waiting]");
    if (!heading) return;
    const left = all(".slot .draft:not(.is-settled)").length;
    const { none, one, more } = heading.dataset;
    heading.textContent = left === 0 ? none : left === 1 ? one : more.replace("#", left);
  };

  // -- after htmx has put something new on the page ---------------------------------------------------
  document.addEventListener("htmx:load", (event) => {
    if (event.target === document.body) return;
    dress(event.target);
    recount();
    const next = event.target.matches("[data-focus]") ? event.target : event.target.querySelector("[data-focus]");
    if (next) {
      if (next.tabIndex < 0) next.tabIndex = -1;
      next.focus({ preventScroll: true });
    }
  });
  const trouble = (text) => {
    const notice = document.getElementById("trouble");
    if (!notice) return;
    notice.hidden = false;
    notice.querySelector("p").textContent = text;
    notice.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("htmx:beforeRequest", () => {
    const notice = document.getElementById("trouble");
    if (notice) notice.hidden = true;
  });
  document.addEventListener("htmx:sendError", () => trouble("SlothPost cannot be reached. Check your connection, then try again."));
  document.addEventListener("htmx:responseError", (event) =>
    trouble(event.detail.xhr.status === 429 ? "That was a lot at once. Wait a minute, then try again."
      : "That did not work, and nothing was changed. Reload the page, then try again."));
})();
