#!/usr/bin/env python3
"""Adds."""


def add(a, b):
    return a + b
