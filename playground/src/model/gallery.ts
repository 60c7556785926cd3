// Scenarios of the gallery. tools/generate/playground_gallery.py writes them.

import titles from "../gallery/titles.json";

export interface GalleryEntry {
  name: string;
  title: string;
}

const files = import.meta.glob<string>("../gallery/*.toml", { query: "?raw", import: "default" });

export const GALLERY: readonly GalleryEntry[] = Object.entries(titles).map(([name, title]) => ({ name, title: `${name}: ${title}` }));

/** The scenario of an entry. It is loaded when somebody opens it. */
export async function galleryToml({ name }: GalleryEntry): Promise<string> {
  const load = files[`../gallery/${name}.toml`];
  if (load === undefined) throw new Error(`there is no scenario ${name}`);
  return load();
}
