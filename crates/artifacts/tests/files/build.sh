#!/bin/sh
set -eu
echo building
