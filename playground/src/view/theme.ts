// Colours. Those of paths come from Okabe and Ito's palette, which colour-blind readers can tell apart.

export interface Theme {
  ink: string;
  soft: string;
  faint: string;
  line: string;
  panel: string;
  alarm: string;
  paths: string[];
}

const LIGHT_PATHS = ["#0072B2", "#C25400", "#00795A", "#A8457F", "#5C6BC0", "#7A5C00"];
const DARK_PATHS = ["#56B4E9", "#F0A030", "#35C79B", "#E08FBE", "#9AA8FF", "#E9DC6A"];

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const isDark = color("--scheme") === "dark";
  return {
    ink: color("--ink"),
    soft: color("--soft"),
    faint: color("--faint"),
    line: color("--line"),
    panel: color("--panel"),
    alarm: color("--alarm"),
    paths: isDark ? DARK_PATHS : LIGHT_PATHS,
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
