// Keeps the memory of a Python that has started, so that the next visit restores it. It stays in
// the browser: the site does not send it.

const STORE = "layerscope-python";

/** The name of a snapshot, which changes with the files that it was made from. */
export async function snapshotName(...files: ArrayBuffer[]): Promise<string | null> {
  if (!("caches" in self) || !("subtle" in crypto)) return null; // a page without https
  const digests = await Promise.all(files.map((file) => crypto.subtle.digest("SHA-256", file)));
  return digests.map((digest) => [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")).join("-");
}

export async function storedSnapshot(name: string): Promise<Uint8Array | null> {
  const found = await (await caches.open(STORE)).match(name);
  return found === undefined ? null : new Uint8Array(await found.arrayBuffer());
}

/** Stores a snapshot in place of older ones. */
export async function storeSnapshot(name: string, snapshot: Uint8Array<ArrayBuffer>): Promise<void> {
  await caches.delete(STORE);
  await (await caches.open(STORE)).put(name, new Response(snapshot));
}

export async function dropSnapshots(): Promise<void> {
  await caches.delete(STORE);
}
