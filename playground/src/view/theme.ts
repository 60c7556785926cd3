// Colours of style.css for canvases. Those of paths come from Okabe and Ito's palette, which colour-blind
// readers can tell apart.

export interface Theme {
  ink: string;
  soft: string;
  faint: string;
  line: string;
  panel: string;
  alarm: string;
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
    paths: PATHS.map((path) => color(`--path-${path}`)),
  };
}

export function pathColour(colours: Theme, path: number): string {
  return colours.paths[path % colours.paths.length] ?? colours.ink;
}

/** Switch between light and dark, and remember the choice. */
export function toggleTheme(): void {
  const style = getComputedStyle(document.documentElement);
  const next = style.getPropertyValue("--scheme").trim() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  remember(next);
}

export function restoreTheme(): void {
  const chosen = new URLSearchParams(location.search).get("theme") ?? recall();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
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
