"""The JSON Schema of plan files, for editors and for the reference."""

from __future__ import annotations

from typing import Any, get_args

from anabranch.sweeps import design, design_factors

_QUANTITY = {"type": ["string", "number"]}
_KEYS = {
    "description": "Keys of the scenario that all get the same value.",
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
}
_RANGE = {
    "description": "A range of a quantity.",
    "type": "object",
    "properties": {
        "from": {"description": 'Lower end, such as `"1Mbit/s"`.', **_QUANTITY},
        "to": {"description": "Upper end, in the same unit.", **_QUANTITY},
        "scale": {
            "description": "How points spread over the range.",
            "enum": ["linear", "log"],
            "default": "linear",
        },
        "keys": _KEYS,
    },
    "required": ["from", "to"],
    "additionalProperties": False,
}
_DESIGN = {
    "description": "Points that fill a space of ranges; all ranges vary together.",
    "type": "object",
    "properties": {
        "kind": {
            "description": "How points are chosen: `wsp` (space-filling by selection), `lhs` "
            "(Latin hypercube), `sobol`, or `grid`.",
            "enum": [*get_args(design.Kind), "grid"],
            "default": "wsp",
        },
        "points": {
            "description": "Number of points; of a grid, for each range.",
            "type": "integer",
            "minimum": 1,
            "maximum": design_factors.MOST_POINTS,
        },
        "seed": {
            "description": "Random seed of the design.",
            "type": "integer",
            "minimum": 0,
            "default": 1,
        },
        "ranges": {
            "description": "A range for each key of the scenario, or for each name with `keys`.",
            "type": "object",
            "additionalProperties": _RANGE,
            "minProperties": 1,
        },
    },
    "required": ["points", "ranges"],
    "additionalProperties": False,
}
_FACTORS = {
    "description": "Values for keys of the scenario; every combination is a cell. A key written "
    'without quotation marks is a table of tables, such as `path.wifi.rate = ["8Mbit/s"]`.',
    "type": "object",
    "additionalProperties": {
        "oneOf": [
            {"description": "Values of one key.", "type": "array", "minItems": 1},
            {
                "description": "Values of several keys, under a name of your own.",
                "type": "object",
                "properties": {
                    "keys": _KEYS,
                    "values": {"description": "Values.", "type": "array", "minItems": 1},
                },
                "required": ["keys", "values"],
                "additionalProperties": False,
            },
            {
                "description": "Parts of a key.",
                "type": "object",
                "not": {"anyOf": [{"required": ["keys"]}, {"required": ["values"]}]},
            },
        ]
    },
}

PLAN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Plan",
    "description": "A sweep: a scenario under all combinations of factors, with several seeds.",
    "type": "object",
    "properties": {
        "name": {
            "description": "Name of the sweep and of its folder; by default the name of the file.",
            "type": "string",
        },
        "description": {"description": "What the sweep asks.", "type": "string", "default": ""},
        "scenario": {
            "description": "The base scenario: a file, relative to the plan.",
            "type": "string",
        },
        "seeds": {
            "description": "Number of seeds (`5` means 1 to 5), or a list of seeds.",
            "oneOf": [
                {"type": "integer", "minimum": 1},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ],
            "default": 1,
        },
        "keep": {
            "description": "What is kept besides metrics: `samples` (time series of the first seed "
            "of each cell) and `blocks` (the delay of each block).",
            "type": "array",
            "items": {"enum": ["blocks", "samples"]},
            "default": [],
        },
        "factors": _FACTORS,
        "design": _DESIGN,
    },
    "required": ["scenario"],
    "additionalProperties": False,
}
