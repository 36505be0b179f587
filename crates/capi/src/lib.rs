//! The C interface of the native runtime: conversion only.
