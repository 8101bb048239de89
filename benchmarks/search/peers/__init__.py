"""Other systems' own selection behind one small protocol; each adapter runs in that system's environment."""
