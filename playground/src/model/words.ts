// Numbers and lists in sentences, as the command line writes them.

/** A number with three or four significant digits, without an exponent where possible. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const sign = value < -1e-9 ? "−" : "";
  const size = Math.abs(value) < 1e-9 ? 0 : Math.abs(value);
  if (size >= 1000) return sign + Math.round(size).toLocaleString("en-US");
  if (size >= 100) return sign + size.toFixed(1);
  if (size >= 0.9995 || size === 0) return sign + size.toFixed(2);
  return sign + String(Number(size.toPrecision(3)));
}

/** A share as a percentage with one decimal. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Names as in a sentence: "a", "a and b", "a, b and c". */
export function listed(names: readonly string[], last = "and"): string {
  const end = names.at(-1) ?? "";
  const others = names.slice(0, -1);
  return others.length > 0 ? `${others.join(", ")} ${last} ${end}` : end;
}
