"""The JSON Schema of plan files, for editors and for the reference."""

from __future__ import annotations

from typing import Any, get_args

from anabranch.sweeps import design, design_factors

_QUANTITY = {"type": ["string", "number"]}
_KEYS = {
    "description": "Keys of the scenario that get the same value.",
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
            "description": "Spacing of points over the range.",
            "enum": ["linear", "log"],
            "default": "linear",
        },
        "keys": _KEYS,
    },
    "required": ["from", "to"],
    "additionalProperties": False,
}
_DESIGN = {
    "description": "Points that sample a space of ranges. Each point sets all ranges at once.",
    "type": "object",
    "properties": {
        "kind": {
            "description": "Kind of design: `wsp` (space-filling by selection), `lhs` "
            "(Latin hypercube), `sobol`, or `grid`.",
            "enum": [*get_args(design.Kind), "grid"],
            "default": "wsp",
        },
        "points": {
            "description": "Number of points; for a grid, the number for each range.",
            "type": "integer",
            "minimum": 1,
            "maximum": design_factors.MOST_POINTS,
        },
        "seed": {
            "description": "Random seed of the design, not of the runs.",
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
    "description": "Values for keys of the scenario. Every combination is a cell. A dotted key "
    'without quotation marks is a nested table, such as `path.wifi.rate = ["8Mbit/s"]`.',
    "type": "object",
    "additionalProperties": {
        "oneOf": [
            {"description": "Values of one key.", "type": "array", "minItems": 1},
            {
                "description": "Values for several keys, under a name that you choose.",
                "type": "object",
                "properties": {
                    "keys": _KEYS,
                    "values": {"description": "Values.", "type": "array", "minItems": 1},
                },
                "required": ["keys", "values"],
                "additionalProperties": False,
            },
            {
                "description": "The rest of a dotted key.",
                "type": "object",
                "not": {"anyOf": [{"required": ["keys"]}, {"required": ["values"]}]},
            },
        ]
    },
}

PLAN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Plan",
    "description": "A sweep: a scenario with all combinations of factors and several seeds.",
    "type": "object",
    "properties": {
        "name": {
            "description": "Name of the sweep and of its folder (default: the name of the file).",
            "type": "string",
        },
        "description": {
            "description": "Question that the sweep answers.",
            "type": "string",
            "default": "",
        },
        "scenario": {
            "description": "File of the base scenario, relative to the plan.",
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
            "description": "Tables to keep besides metrics: `samples` (time series of the first "
            "seed of each cell) and `blocks` (the delay of each block).",
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
