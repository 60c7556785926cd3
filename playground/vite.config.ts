import { defineConfig } from "vite";

// The built page lies in the Python package, so that the wheel contains it.
export default defineConfig({
  base: "./",
  worker: { format: "es" },
  build: {
    outDir: process.env["PLAYGROUND_OUT"] ?? "../python/anabranch/playground/site",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 1000,
  },
});
