"""Messages of layers that bring data in and take it out."""

from __future__ import annotations

MESSAGES = {
    "TransformationParameter": """
        1 float scale = 1
        2 bool mirror = false
        3 uint32 crop_size = 0
        4 string mean_file
        5 float[] mean_value
        6 bool force_color = false
        7 bool force_gray = false
    """,
    "DataParameter": """
        enum DB LEVELDB=0 LMDB=1
        1 string source
        4 uint32 batch_size
        7 uint32 rand_skip = 0
        8 DB backend = LEVELDB
        2 float scale = 1
        3 string mean_file
        5 uint32 crop_size = 0
        6 bool mirror = false
        9 bool force_encoded_color = false
        10 uint32 prefetch = 4
    """,
    "DummyDataParameter": """
        1 FillerParameter[] data_filler
        6 BlobShape[] shape
        2 uint32[] num
        3 uint32[] channels
        4 uint32[] height
        5 uint32[] width
    """,
    "HDF5DataParameter": """
        1 string source
        2 uint32 batch_size
        3 bool shuffle = false
    """,
    "HDF5OutputParameter": "1 string file_name",
    "ImageDataParameter": """
        1 string source
        4 uint32 batch_size = 1
        7 uint32 rand_skip = 0
        8 bool shuffle = false
        9 uint32 new_height = 0
        10 uint32 new_width = 0
        11 bool is_color = true
        2 float scale = 1
        3 string mean_file
        5 uint32 crop_size = 0
        6 bool mirror = false
        12 string root_folder
    """,
    "MemoryDataParameter": """
        1 uint32 batch_size
        2 uint32 channels
        3 uint32 height
        4 uint32 width
    """,
    "WindowDataParameter": """
        1 string source
        2 float scale = 1
        3 string mean_file
        4 uint32 batch_size
        5 uint32 crop_size = 0
        6 bool mirror = false
        7 float fg_threshold = 0.5
        8 float bg_threshold = 0.5
        9 float fg_fraction = 0.25
        10 uint32 context_pad = 0
        11 string crop_mode = warp
        12 bool cache_images = false
        13 string root_folder
    """,
}
