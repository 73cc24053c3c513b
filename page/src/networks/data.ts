// Types of the data of a page of many networks, which Python writes (export/page_networks.py).

export interface NetworkColumn {
  name: string;
  title: string;
  kind: "text" | "count" | "bytes" | "time";
}

export interface Network {
  key: string;
  name: string;
  values: (number | string | null)[];
  texts: string[];
  /** Texts for a narrow page. */
  shorts: string[];
  /** Whether the page has an element with the data of its report. */
  has_report?: boolean;
  /** The command that writes its report. */
  command?: string;
  error?: string;
}

export interface NetworksData {
  kind: "networks";
  schema: number;
  version: string;
  title: string;
  notes: string[];
  columns: NetworkColumn[];
  rows: Network[];
}

/** The data of a page of networks, or null where the page has other data. */
export function readNetworks(text: string | null | undefined): NetworksData | null {
  if (!text?.startsWith('{"kind":"networks"')) return null;
  return JSON.parse(text) as NetworksData;
}
