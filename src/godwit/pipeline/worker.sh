#!/bin/sh
# Python for the workers of a session on one machine. Spark has them import pyspark out of a zip in which nothing is
# compiled, and each then works for more than a second before its first row; what is installed is the same, three times
# as quick.
set -f
IFS=:
kept=
for place in $PYTHONPATH; do
    case "$place" in
        */pyspark.zip | */py4j-*-src.zip) ;;
        *) kept="$kept${kept:+:}$place" ;;
    esac
done
PYTHONPATH="$kept" exec "$GODWIT_PYTHON" "$@"
