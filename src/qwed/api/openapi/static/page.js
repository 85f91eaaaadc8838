"use strict";

// The page is whole without this: it adds the search and the forms. Text goes in with textContent alone, and what is
// typed as a key or a token is read from its field when a request leaves and kept nowhere else.

const one = (selector, within) => (within || document).querySelector(selector);
const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));

const reveal = () => {
  for (const hidden of all("#credentials, #finder, form.try, button.use")) {
    hidden.hidden = false;
  }
};

const search = () => {
  const words = one("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const article of all("article")) {
    const text = article.dataset.words;
    article.hidden = !words.every((word) => text.includes(word));
    one(`nav a[href="#${article.id}"]`).parentElement.hidden = article.hidden;
    found += article.hidden ? 0 : 1;
  }
  for (const section of all("section.tag")) {
    section.hidden = !one("article:not([hidden])", section);
  }
  one("#found").textContent = words.length ? `${found} found` : "";
};

const addressOf = (form) => {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const field of all("input", form)) {
    if (field.dataset.in === "path") {
      path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    } else if (field.dataset.in === "query" && field.value !== "") {
      query.append(field.name, field.value);
    }
  }
  const asked = query.toString();
  return asked ? `${path}?${asked}` : path;
};

const headersOf = (form) => {
  const headers = new Headers();
  for (const field of all('input[data-in="header"]', form)) {
    if (field.value !== "") {
      headers.set(field.name, field.value);
    }
  }
  if (form.dataset.credential !== "none" && one("#key").value !== "") {
    headers.set("X-API-Key", one("#key").value);
  }
  if (form.dataset.credential === "token" && one("#token").value !== "") {
    headers.set("Authorization", `Bearer ${one("#token").value}`);
  }
  return headers;
};

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

const show = (form, status, good, headers, body) => {
  const line = one(".status", form);
  line.textContent = status;
  line.className = good ? "status good" : "status bad";
  one(".headers", form).textContent = headers;
  one(".body", form).textContent = body;
  one(".answer", form).hidden = false;
};

const send = async (form) => {
  const began = performance.now();
  try {
    const asked = { method: form.dataset.method, headers: headersOf(form), credentials: "omit", redirect: "error" };
    const body = one("textarea", form);
    if (body) {
      asked.body = body.value;
      asked.headers.set("Content-Type", "application/json");
    }
    const response = await fetch(addressOf(form), asked);
    const text = await response.text();
    const took = Math.round(performance.now() - began);
    const headers = Array.from(response.headers, ([name, value]) => `${name}: ${value}`).join("\n");
    show(form, `${response.status} ${response.statusText} in ${took} ms`, response.ok, headers, pretty(text));
  } catch (error) {
    show(form, "no answer", false, "", String(error));
  }
};

const use = (button) => {
  const article = button.closest("article");
  const area = one("textarea", article);
  area.value = one("pre", button.closest("figure")).textContent;
  area.focus();
};

for (const form of all("form.try")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
for (const button of all("button.use")) {
  button.addEventListener("click", () => use(button));
}
for (const form of all("#credentials, #finder")) {
  form.addEventListener("submit", (event) => event.preventDefault());
}
one("#search").addEventListener("input", search);
reveal();
