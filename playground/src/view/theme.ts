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

/** Take light or dark from the address or from an earlier choice; otherwise follow the system. */
export function followTheme(changed: () => void): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const choose = (): void => {
    const chosen = new URLSearchParams(location.search).get("theme") ?? recall();
    document.documentElement.dataset["theme"] = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  };
  choose();
  dark.addEventListener("change", () => {
    choose();
    changed();
  });
}

/** Switch between light and dark, and remember the choice. */
export function toggleTheme(): void {
  const { dataset } = document.documentElement;
  const next = dataset["theme"] === "dark" ? "light" : "dark";
  dataset["theme"] = next;
  remember(next);
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
