// Colours of style.css for canvases. Those of paths come from Okabe and Ito's palette, which colour-blind
// readers can tell apart.

export interface Theme {
  ink: string;
  soft: string;
  faint: string;
  line: string;
  panel: string;
  alarm: string;
  accent: string;
  paths: string[];
}

/** Colours of paths in style.css. Further paths use them again. */
export const PATHS = [0, 1, 2, 3, 4, 5];

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  return {
    ink: color("--ink"),
    soft: color("--soft"),
    faint: color("--faint"),
    line: color("--line"),
    panel: color("--panel"),
    alarm: color("--alarm"),
    accent: color("--accent"),
    paths: PATHS.map((path) => color(`--path-${path}`)),
  };
}

export function pathColour(colours: Theme, path: number): string {
  return colours.paths[path % colours.paths.length] ?? colours.ink;
}

/** Take light or dark from the address or from an earlier choice; otherwise follow the system. A page
 * around this one may change it by a message. */
export function followTheme(changed: () => void): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const choose = (): void => {
    const chosen = new URLSearchParams(location.search).get("theme") ?? recall();
    setTheme(isTheme(chosen) ? chosen : dark.matches ? "dark" : "light");
  };
  choose();
  dark.addEventListener("change", () => {
    choose();
    changed();
  });
  window.addEventListener("message", ({ data }: MessageEvent<{ theme?: unknown } | null>) => {
    if (!isTheme(data?.theme)) return;
    setTheme(data.theme);
    changed();
  });
}

/** Switch between light and dark, and remember the choice. */
export function toggleTheme(): void {
  const next = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
  setTheme(next);
  remember(next);
}

function isTheme(value: unknown): value is "light" | "dark" {
  return value === "light" || value === "dark";
}

function setTheme(theme: "light" | "dark"): void {
  document.documentElement.dataset["theme"] = theme;
}

// Storage may be forbidden, for example in a frame. Then nothing is remembered.
function remember(value: string): void {
  try {
    localStorage.setItem("theme", value);
  } catch {
    return;
  }
}

function recall(): string | null {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}
