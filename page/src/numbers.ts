// The two rules of rounding that the page shares with the command line (report/numbers.py); the
// tests compare them with it. Everything else that is printed is a text of Python.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];

/** All digits, in groups of three; "" for an unknown figure. */
export function exactText(value: number | null): string {
  if (value === null) return "";
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

// Rounds value / divisor to a whole number, halves to the even one.
function rounded(value: bigint, divisor: bigint): bigint {
  const whole = value / divisor;
  const twice = (value % divisor) * 2n;
  if (twice > divisor || (twice === divisor && whole % 2n === 1n)) return whole + 1n;
  return whole;
}

/** Three significant figures with an SI prefix; whole numbers below 1000 in full. */
export function shortText(value: number): string {
  return parts(value).join("");
}

/** Bytes in powers of 1000: 25.7 MB. */
export function bytesText(value: number): string {
  const [figure, prefix] = parts(value);
  return `${figure} ${prefix}B`;
}

/** Figure and SI prefix of a whole number. */
export function parts(value: number): [string, string] {
  if (value < 1000) return [String(value), ""];
  const exact = BigInt(Math.round(value));
  let power = 1;
  while (power < PREFIXES.length - 1 && exact >= 1000n ** BigInt(power + 1)) power += 1;
  const unit = 1000n ** BigInt(power);
  for (const decimals of [2, 1, 0]) {
    const scale = 10n ** BigInt(decimals);
    const digits = rounded(exact * scale, unit);
    if (digits < 1000n) {
      const text = digits.toString().padStart(decimals + 1, "0");
      const figure = decimals === 0 ? text : `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
      return [figure, PREFIXES[power] ?? ""];
    }
  }
  return power + 1 < PREFIXES.length ? ["1.00", PREFIXES[power + 1] ?? ""] : [String(exact / unit), PREFIXES[power] ?? ""];
}
