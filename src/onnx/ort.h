/* ort.h - ONNX Runtime, where this host has one: opened with dlopen, so that a program which never asks needs none. */
#ifndef STRETTO_ONNX_ORT_H
#define STRETTO_ONNX_ORT_H

#include "onnx/graph.h"

struct ort;

struct ort_tensor {
    const char *name;
    enum onnx_type type;
    i32 ndim;
    i64 dim[ONNX_DIMS];
    void *data; /* of an input: the caller's; of an output: the runtime's, until the next ort_run or ort_free */
    i64 count;  /* set by ort_run: numbers of an output */
};

/* The runtime of STRETTO_ONNXRUNTIME (a path), of the system, or of a Python package near by.  *out = NULL: there is none, or the
 * variable is "off". E601, E701. */
err ort_open(struct ort **out);
void ort_free(struct ort *o);                 /* NULL is allowed */
const char *ort_version(const struct ort *o); /* "1.23.0" */
/* Reads a model of n bytes. E907 with the runtime's words. */
err ort_load(struct ort *o, const void *model, i64 n);
/* Runs the model: out[i].name and type are the caller's. E907. */
err ort_run(struct ort *o, i32 nin, const struct ort_tensor *in, i32 nout, struct ort_tensor *out);
err ort_need(const struct ort_tensor *out, i64 count); /* E907: an output with another count of numbers */

#endif
