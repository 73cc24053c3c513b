// Keeps every file of the site, so that it works offline after the first visit.
const VERSION = "layerscope-@VERSION@";
const FILES = /* @FILES@ */ [];
const SNAPSHOTS = "layerscope-python"; // of src/site/snapshots.ts

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const clean = caches.keys().then((names) => Promise.all(names.filter((name) => name !== VERSION && name !== SNAPSHOTS).map((name) => caches.delete(name))));
  event.waitUntil(clean.then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((found) => found ?? fetch(event.request)));
});
