"""Record batches: their formats, codecs and views."""
