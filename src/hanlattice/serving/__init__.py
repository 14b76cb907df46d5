"""The HTTP service and its page; needs the extra ``serve``."""
