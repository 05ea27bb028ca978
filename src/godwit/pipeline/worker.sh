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
case "$2" in
    pyspark.sql.streaming.python_streaming_source_runner) set -- -P "${0%/*}/early.py" "$@" ;;
esac
PYTHONPATH="$kept" exec "$GODWIT_PYTHON" "$@"
