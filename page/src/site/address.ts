// The address after the #: zoo network or compressed text, options, convention and selected node.

export interface Address {
  zoo: string;
  text: string;
  network: string;
  input: string;
  batch: string;
  dtype: string;
  /** Of Caffe: test or train. */
  phase: string;
  convention: string;
  node: string;
}

const BLANK: Address = { zoo: "", text: "", network: "", input: "", batch: "", dtype: "", phase: "", convention: "", node: "" };
const MOST_TEXT = 1 << 21;
const MOST_ADDRESS = 1 << 20;

async function through(data: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([data]).stream().pipeThrough(stream).getReader();
  const parts: BlobPart[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST_TEXT) {
      await reader.cancel();
      throw new Error("the text of this link is too long");
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function packed(text: string): Promise<string> {
  const data = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of data) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(word: string): Promise<string> {
  const binary = atob(word.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(await through(Uint8Array.from(binary, (char) => char.charCodeAt(0)), new DecompressionStream("deflate-raw")));
}

/** The parts of an address; a text that cannot be unpacked is an error. */
export async function readAddress(hash: string): Promise<Address> {
  const given = new URLSearchParams(hash.slice(1, MOST_ADDRESS));
  const found = { ...BLANK };
  for (const key of Object.keys(BLANK) as (keyof Address)[]) found[key] = given.get(key) ?? "";
  if (found.text !== "") found.text = await unpacked(found.text);
  return found;
}

export async function writeAddress(address: Address): Promise<string> {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(address) as [keyof Address, string][]) {
    if (value !== "") parts.set(key, key === "text" ? await packed(value) : value);
  }
  return `#${parts.toString()}`;
}
