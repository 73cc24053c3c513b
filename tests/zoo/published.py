"""Figures that others published, as constants: they are compared on every machine.

A row of a table names a network, an input (one side, or all sizes; `@` a layer) and the figures as
printed, `-` for none. The last digit of a figure is its precision. Each table names its source.
What a column counts is in QUANTITIES of test_published_figures.py.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One published number."""

    source: str
    network: str
    input: str
    layer: str  # empty: the whole network
    quantity: str
    stated: str

    def __str__(self) -> str:
        at = f"{self.input}@{self.layer}" if self.layer else self.input
        return f"{self.network}-{at}-{self.quantity}"


def table(source: str, text: str) -> tuple[Figure, ...]:
    """The figures of a table whose columns are separated by spaces."""
    header, *lines = (line.split() for line in text.strip().splitlines())
    found = []
    for network, at, *values in lines:
        size, _, layer = at.partition("@")
        for quantity, stated in zip(header[2:], values, strict=True):
            if stated != "-":
                found.append(Figure(source, network, size, layer, quantity, stated))
    return tuple(found)


# num_params and the GMACs that it calls GFLOPS. Its parameters of Inception v3 include the head
# that is only used in training, which the zoo does not have.
TORCHVISION = table(
    "torchvision 0.29.2, meta of its weights",
    """
    network             input     params    GMACs
    alexnet               224   61100840    0.714
    convnext_base         224   88591464   15.355
    convnext_large        224  197767336   34.361
    convnext_small        224   50223688    8.684
    convnext_tiny         224   28589128    4.456
    densenet121           224    7978856    2.834
    densenet161           224   28681000    7.728
    densenet169           224   14149480    3.360
    densenet201           224   20013928    4.291
    efficientnet_b0       224    5288548    0.386
    efficientnet_b1       240    7794184    0.687
    efficientnet_b2       288    9109994    1.088
    efficientnet_b3       300   12233232    1.827
    efficientnet_b4       380   19341616    4.394
    efficientnet_b5       456   30389784   10.266
    efficientnet_b6       528   43040704   19.068
    efficientnet_b7       600   66347960   37.746
    efficientnet_v2_l     480  118515272   56.080
    efficientnet_v2_m     480   54139356   24.582
    efficientnet_v2_s     384   21458488    8.366
    googlenet             224    6624904    1.498
    inception_v3          299          -    5.713
    mnasnet0_5            224    2218512    0.104
    mnasnet0_75           224    3170208    0.215
    mnasnet1_0            224    4383312    0.314
    mnasnet1_3            224    6282256    0.526
    mobilenet_v2          224    3504872    0.301
    mobilenet_v3_large    224    5483032    0.217
    mobilenet_v3_small    224    2542856    0.057
    regnet_x_400mf        224    5495976    0.414
    regnet_y_400mf        224    4344144    0.402
    resnet101             224   44549160    7.801
    resnet152             224   60192808   11.514
    resnet18              224   11689512    1.814
    resnet34              224   21797672    3.664
    resnet50              224   25557032    4.089
    resnext101_32x8d      224   88791336   16.414
    resnext50_32x4d       224   25028904    4.230
    shufflenet_v2_x0_5    224    1366792    0.040
    shufflenet_v2_x1_0    224    2278604    0.145
    shufflenet_v2_x1_5    224    3503624    0.296
    shufflenet_v2_x2_0    224    7393996    0.583
    squeezenet1_0         224    1248424    0.819
    squeezenet1_1         224    1235496    0.349
    swin_b                224   87768224   15.431
    swin_s                224   49606258    8.741
    swin_t                224   28288354    4.491
    vgg11                 224  132863336    7.609
    vgg11_bn              224  132868840    7.609
    vgg13                 224  133047848   11.308
    vgg13_bn              224  133053736   11.308
    vgg16                 224  138357544   15.470
    vgg16_bn              224  138365992   15.470
    vgg19                 224  143667240   19.632
    vgg19_bn              224  143678248   19.632
    vit_b_16              224   86567656   17.564
    vit_b_32              224   88224232    4.409
    vit_h_14              224  632045800  167.295
    vit_l_16              224  304326632   61.555
    vit_l_32              224  306535400   15.378
    wide_resnet101_2      224  126886696   22.753
    wide_resnet50_2       224   68883240   11.398
    """,
)

# Millions of parameters, GMACs with norms and pools as fvcore counts them, millions of activations.
TIMM = table(
    "timm, results/benchmark-infer-*.csv",
    """
    network                   input  Mparams  timm_GMACs  timm_Mactivations
    convnext_base               224    88.59       15.38              28.75
    convnext_base               384    88.59       45.21              84.49
    convnext_tiny               224    28.59        4.47              13.44
    convnext_tiny               288    28.59        7.39              22.21
    densenet121                 224     7.98        2.87               6.90
    densenet121                 288     7.98        4.74              11.41
    densenet161                 224    28.68        7.79              11.06
    densenet169                 224    14.15        3.40               7.30
    densenet201                 224    20.01        4.34               7.85
    efficientnet_b0             224     5.29        0.40               6.75
    efficientnet_b0             256     5.29        0.52               8.81
    efficientnet_b3             288    12.23        1.63              21.49
    efficientnet_b3             320    12.23        2.01              26.52
    efficientnet_b4             320    19.34        3.13              34.76
    efficientnet_b4             384    19.34        4.51              50.04
    efficientnet_b5             416    30.39        8.27              80.68
    efficientnet_b7             600    66.35       38.33             289.94
    inception_v3                299    23.83        5.73               8.97
    mnasnet_050                 224     2.22        0.11               3.07
    mnasnet_075                 224     3.17        0.23               4.77
    mnasnet_100                 224     4.38        0.33               5.46
    mnasnet_140                 224     7.12        0.60               7.71
    mobilenetv1_100             224     4.23        0.58               5.04
    mobilenetv1_125             256     6.27        1.16               8.23
    mobilenetv2_035             224     1.68        0.07               2.86
    mobilenetv2_050             224     1.97        0.10               3.64
    mobilenetv2_100             224     3.50        0.31               6.68
    mobilenetv2_140             224     6.11        0.60               9.57
    mobilenetv3_small_100       224     2.54        0.06               1.42
    regnetx_004                 224     5.16        0.40               3.14
    regnety_004                 224     4.34        0.41               3.89
    resnext101_32x4d            224    44.18        8.01              21.23
    resnext101_32x8d            176    88.79       10.33              19.37
    resnext101_64x4d            288    83.46       25.66              51.59
    resnext50_32x4d             160    25.03        2.17               7.35
    tf_efficientnet_b1          240     7.79        0.71              10.88
    tf_efficientnet_b6          528    43.04       19.40             167.39
    tf_efficientnetv2_l         480   118.52       56.40             157.99
    tf_efficientnetv2_m         384    54.14       15.85              57.52
    tf_mobilenetv3_large_100    224     5.48        0.23               4.41
    wide_resnet101_2            224   126.89       22.80              21.23
    wide_resnet50_2             288    68.88       18.89              23.81
    """,
)

# Width, stride and padding in pixels; GFLOPs as TensorFlow's profiler counts them.
RECEPTIVE_FIELDS = table(
    "google-research/receptive_field, README and its table of end points",
    """
    network                             input@layer  field  stride  padding  slim_GFLOPs
    alexnet_v2-slim            224@alexnet_v2/pool5    195      32       64         1.38
    inception_v2-slim                  224@Mixed_5c    699      32      318         3.88
    inception_v3-slim                  224@Mixed_7c   1311      32      618         5.69
    inception_v4-slim                  224@Mixed_7d   2071      32      998        12.27
    mobilenet_v1_075-slim   224@Conv2d_13_pointwise    315      32      126         0.65
    resnet_v1_50-slim       224@resnet_v1_50/block4    483      32      239         6.96
    resnet_v1_152-slim     224@resnet_v1_152/block4   1507      32      751        21.81
    resnet_v1_200-slim     224@resnet_v1_200/block4   1763      32      879        28.80
    alexnet_v2-slim            321@alexnet_v2/conv1     11       4        0        0.283
    alexnet_v2-slim            321@alexnet_v2/pool1     19       8        0        0.284
    alexnet_v2-slim            321@alexnet_v2/conv2     51       8       16        1.171
    alexnet_v2-slim            321@alexnet_v2/conv3     99      16       32        1.602
    alexnet_v2-slim            321@alexnet_v2/conv4    131      16       48        2.462
    alexnet_v2-slim            321@alexnet_v2/conv5    163      16       64        3.036
    alexnet_v2-slim            321@alexnet_v2/pool5    195      32       64        3.036
    inception_v2-slim             321@Conv2d_2c_3x3     19       4        9        1.653
    inception_v2-slim                  321@Mixed_3c     91       8       45        3.268
    inception_v2-slim                  321@Mixed_4e    379      16      189        6.795
    inception_v2-slim                  321@Mixed_5c    699      32      349        8.626
    inception_v3-slim             224@Conv2d_4a_3x3     23       4        2        1.460
    inception_v3-slim                  224@Mixed_5d    127       8       50        2.485
    inception_v3-slim                  224@Mixed_6e    927      16      442        4.854
    inception_v4-slim                  321@Mixed_3a     15       4        2        2.105
    inception_v4-slim                  321@Mixed_5e    183       8       78        8.731
    inception_v4-slim                  321@Mixed_6h   1559      16      758       24.513
    inception_v4-slim                  321@Mixed_7d   2071      32      998       27.390
    mobilenet_v1_075-slim              321@Conv2d_0      3       2        1        0.034
    mobilenet_v1_075-slim    321@Conv2d_5_pointwise     43       8       21        0.503
    mobilenet_v1_075-slim   321@Conv2d_11_pointwise    219      16      109        1.237
    mobilenet_v1_075-slim   321@Conv2d_13_pointwise    315      32      157        1.454
    resnet_v1_50-slim       321@resnet_v1_50/block1     35       8       17        2.767
    resnet_v1_50-slim       321@resnet_v1_50/block2     99      16       49        6.315
    resnet_v1_50-slim       321@resnet_v1_50/block3    291      32      145       12.013
    resnet_v1_50-slim       321@resnet_v1_50/block4    483      32      241       15.629
    resnet_v1_152-slim     321@resnet_v1_152/block1     35       8       17        2.767
    resnet_v1_152-slim     321@resnet_v1_152/block2    163      16       81       10.061
    resnet_v1_152-slim     321@resnet_v1_152/block3   1315      32      657       45.238
    resnet_v1_152-slim     321@resnet_v1_152/block4   1507      32      753       48.854
    resnet_v2_101-slim     224@resnet_v2_101/block1     35       8       15        1.327
    resnet_v2_101-slim     224@resnet_v2_101/block2     99      16       47        2.979
    resnet_v2_101-slim     224@resnet_v2_101/block3    835      32      415       12.932
    resnet_v2_101-slim     224@resnet_v2_101/block4   1027      32      511       14.397
    """,
)

# MB of parameters and of features (ReLU in place) by 1024, and operations. GoogLeNet's parameters
# include two heads that are only used in training.
CONVNET_BURDEN = table(
    "albanie/convnet-burden, README",
    """
    network              input  param_MB  feature_MB  burden_MFLOPs  burden_GFLOPs
    caffenet           224x224       233           3            724              -
    vgg-vd-16          224x224       528          58              -             16
    vgg-vd-19          224x224       548          63              -             20
    googlenet          224x224         -          26              -              2
    resnet18           224x224        45          23              -              2
    resnet-50          224x224        98         103              -              4
    resnet-101         224x224       170         155              -              8
    resnet-152         224x224       230         219              -             11
    resnext-50-32x4d   224x224        96         132              -              4
    resnext-101-32x4d  224x224       169         197              -              8
    densenet121        224x224        31         126              -              3
    densenet161        224x224       110         235              -              8
    densenet169        224x224        55         152              -              3
    densenet201        224x224        77         196              -              4
    """,
)

# The sums of four networks, which are its TOTAL rows, and rows of two others, in Netscope's words.
NETSCOPE = (
    *table(
        "dgschwend/netscope 8ae36d8, tables of its presets",
        """
    network                input        macc      comp     add      div     exp activation   param
    googlenet-caffe 10x3x227x227 16040427520 161073760 8829200 16644880 8327440  102186990 6998556
    mtcnn-pnet         1x3x12x12       44760      2176       2        2       2       3042    6574
    mtcnn-rnet         1x3x24x24     1530768     55548       2        2       2      42180   99910
    mtcnn-onet         1x3x48x48    12909952    315744       2        2       2     234418  388496
        """,
    ),
    *table(
        "dgschwend/netscope 8ae36d8, tables of its presets",
        """
    network                   input@layer       macc    comp     add  activation     param
    alexnet-caffe       1x3x227x227@conv1  105415200       -       -      290400     34944
    alexnet-caffe       1x3x227x227@norm1    1452000       -  290400      290400         2
    alexnet-caffe       1x3x227x227@pool1          -  629856       -       69984         -
    alexnet-caffe       1x3x227x227@conv2  223948800       -       -      186624    307456
    alexnet-caffe       1x3x227x227@norm2     933120       -  186624      186624         2
    alexnet-caffe       1x3x227x227@pool2          -  389376       -       43264         -
    alexnet-caffe       1x3x227x227@conv3  149520384       -       -       64896    885120
    alexnet-caffe       1x3x227x227@conv4  112140288       -       -       64896    663936
    alexnet-caffe       1x3x227x227@conv5   74760192       -       -       43264    442624
    alexnet-caffe       1x3x227x227@pool5          -   82944       -        9216         -
    alexnet-caffe         1x3x227x227@fc6   37748736       -       -        4096  37752832
    alexnet-caffe         1x3x227x227@fc7   16777216       -       -        4096  16781312
    alexnet-caffe         1x3x227x227@fc8    4096000       -       -        1000   4097000
    nin                 1x3x224x224@conv1  101616768       -       -      279936     34944
    nin                 1x3x224x224@cccp1   26873856       -       -      279936      9312
    nin                 1x3x224x224@cccp2   26873856       -       -      279936      9312
    nin                 1x3x224x224@pool0          -  629856       -       69984         -
    nin                 1x3x224x224@conv2  447897600       -       -      186624    614656
    nin                 1x3x224x224@cccp3   47775744       -       -      186624     65792
    nin                 1x3x224x224@cccp4   47775744       -       -      186624     65792
    nin                 1x3x224x224@pool2          -  389376       -       43264         -
    nin                 1x3x224x224@conv3  149520384       -       -       64896    885120
    nin                 1x3x224x224@cccp5   24920064       -       -       64896    147840
    nin                 1x3x224x224@cccp6   24920064       -       -       64896    147840
    nin                 1x3x224x224@pool3          -  124416       -       13824         -
    nin            1x3x224x224@conv4-1024  127401984       -       -       36864   3539968
    nin            1x3x224x224@cccp7-1024   37748736       -       -       36864   1049600
    nin            1x3x224x224@cccp8-1024   36864000       -       -       36000   1025000
    nin                 1x3x224x224@pool4          -       -   36000        1000         -
        """,
    ),
    *table(
        "dgschwend/netscope 8ae36d8, tables of its presets",
        """
    network              input@layer     div     exp
    alexnet-caffe  1x3x227x227@norm1  580800  290400
    alexnet-caffe  1x3x227x227@norm2  373248  186624
        """,
    ),
)

# FLOPs, bytes moved, FLOPs per byte, and the sizes of the matrix product of a convolution.
BODA = table(
    "moskewcz/boda, the printed profile of nin_imagenet_nopad",
    """
    network               input@layer  boda_MF  boda_GF  boda_MB  boda_AI      M     N     K
    nin-nopad       5x3x227x227@conv1        -     1.05     9.04      117  15125    96   363
    nin-nopad       5x3x227x227@cccp1      279        -     11.7     23.9  15125    96    96
    nin-nopad       5x3x227x227@cccp2      279        -     11.7     23.9  15125    96    96
    nin-nopad       5x3x227x227@conv2        -     3.25     6.57      495   2645   256  2400
    nin-nopad       5x3x227x227@cccp3      347        -     5.68     61.0   2645   256   256
    nin-nopad       5x3x227x227@cccp4      347        -     5.68     61.0   2645   256   256
    nin-nopad       5x3x227x227@conv3        -     3.19     8.57      373   1805   384  2304
    nin-nopad       5x3x227x227@cccp5      532        -     6.14     86.7   1805   384   384
    nin-nopad       5x3x227x227@cccp6      532        -     6.14     86.7   1805   384   384
    nin-nopad  5x3x227x227@conv4-1024        -     1.73     15.8      110    245  1024  3456
    nin-nopad  5x3x227x227@cccp7-1024      514        -     6.21     82.8    245  1024  1024
    nin-nopad  5x3x227x227@cccp8-1024      502        -     6.08     82.5    245  1000  1024
    nin-nopad             5x3x227x227        -     12.6     99.2      127      -     -     -
    """,
)

# 569 M to 49 M MACs with the additions of the last average pool; parameters as stored for 1001
# classes: norms have a shift and statistics, but no scale.
MOBILENET_V1 = table(
    "tensorflow/models, research/slim/nets/mobilenet_v1.md",
    """
    network          input  MMACs_with_pool  Mparams_stored
    MobileNetV1-1.0    224              569            4.24
    MobileNetV1-1.0    192              418               -
    MobileNetV1-1.0    160              291               -
    MobileNetV1-1.0    128              186               -
    MobileNetV1-0.5    224              150            1.34
    MobileNetV1-0.5    192              110               -
    MobileNetV1-0.5    160               77               -
    MobileNetV1-0.5    128               49               -
    """,
)

# MACs are cut to whole millions; parameters are without those of the norms.
MOBILENET_V2 = table(
    "tensorflow/models, research/slim/nets/mobilenet/README.md",
    """
    network           input  MMACs_cut  Mparams_without_norms
    MobileNetV2-1.4     224        582                   6.06
    MobileNetV2-1.3     224        509                   5.34
    MobileNetV2-1.0     224        300                   3.47
    MobileNetV2-1.0     192        221                      -
    MobileNetV2-1.0     160        154                      -
    MobileNetV2-1.0     128         99                      -
    MobileNetV2-1.0      96         56                      -
    MobileNetV2-0.75    224        209                   2.61
    MobileNetV2-0.75    192        153                      -
    MobileNetV2-0.75    160        107                      -
    MobileNetV2-0.75    128         69                      -
    MobileNetV2-0.75     96         39                      -
    MobileNetV2-0.5     224         97                   1.95
    MobileNetV2-0.5     192         71                      -
    MobileNetV2-0.5     160         50                      -
    MobileNetV2-0.5     128         32                      -
    MobileNetV2-0.5      96         18                      -
    MobileNetV2-0.35    224         59                   1.66
    MobileNetV2-0.35    192         43                      -
    MobileNetV2-0.35    160         30                      -
    MobileNetV2-0.35    128         20                      -
    MobileNetV2-0.35     96         11                      -
    """,
)

# The paper's shortcuts of 18 and 34 have no weights. 3.857 and 1.582 GMACs are cut, not rounded.
RESNET_PAPER = table(
    "He et al. 2015, table 1 (FLOPs there are multiply-adds)",
    """
    network      input  GMACs  GMACs_cut  GMACs_without_shortcuts
    resnet18       224      -          -                      1.8
    resnet34       224      -          -                      3.6
    resnet50-v1    224      -        3.8                        -
    ResNet-101     224    7.6          -                        -
    ResNet-152     224   11.3          -                        -
    """,
)

EARLY_NETWORKS = table(
    "discourse.opengenus.org, FLOPS of machine learning models",
    """
    network          input  GMACs  GMACs_cut  GMACs_of_convolutions
    vgg16              224      -          -                   15.3
    vgg19              224   19.6          -                      -
    alexnet-caffe      227   0.72          -                      -
    googlenet-caffe    224      -        1.5                      -
    """,
)

# 4.2 and 9.9 GMACs of B4 and B5 fit no way of counting (4.394 and 10.266); 37.7 of B7 is cut. The
# 9.2 M parameters of B2 include the statistics of its norms.
EFFICIENTNET_PAPER = table(
    "Tan and Le 2019, table 2",
    """
    network          input  Mparams  Mparams_with_statistics  GMACs  GMACs_cut
    efficientnet_b0    224      5.3                        -   0.39          -
    efficientnet_b1    240      7.8                        -    0.7          -
    efficientnet_b2    260        -                      9.2    1.0          -
    efficientnet_b3    300       12                        -    1.8          -
    efficientnet_b4    380       19                        -      -          -
    efficientnet_b5    456       30                        -      -          -
    efficientnet_b6    528       43                        -     19          -
    efficientnet_b7    600       66                        -      -         37
    """,
)

CONVNEXT_README = table(
    "facebookresearch/ConvNeXt, README (28 M of T is cut)",
    """
    network         input  Mparams  Mparams_cut  GMACs
    convnext_tiny     224        -           28    4.5
    convnext_small    224       50            -    8.7
    convnext_base     224       89            -   15.4
    convnext_large    224      198            -   34.4
    convnext_xlarge   224      350            -   60.9
    """,
)

MOBILENET_V3_README = table(
    "tensorflow/models, research/slim/nets/mobilenet/README.md",
    """
    network             input  MMACs  Mparams_without_norms_cut
    mobilenet_v3_large    224    217                        5.4
    """,
)

SWIN_README = table(
    "microsoft/Swin-Transformer, README",
    """
    network  input  Mparams  GMACs
    swin_s     224       50    8.7
    """,
)

LANGUAGE_MODELS = table(
    "READMEs of karpathy/nanoGPT, MrYxJ/calculate-flops.pytorch, ThanatosShinji/onnx-tool",
    """
    network     input      params  Mparams  Gparams  GMACs
    gpt2-large  1x128           -      774        -      -
    gpt2-xl     1x128           -     1558        -      -
    llama-7b    1x128  6738415616        -        -    850
    llama-3-8b  1x128           -        -  8.03026      -
    """,
)

NANOGPT = table(
    "karpathy/nanoGPT, transformer_sizing.ipynb (2 FLOPs per multiply-add)",
    """
    network   input@layer                        FLOPs_of_products
    gpt2      1x1024@transformer.h.0.attn.c_attn        3623878656
    gpt2      1x1024@transformer.h.0.attn.c_proj        1207959552
    gpt2      1x1024@transformer.h.0.mlp.c_fc           4831838208
    gpt2      1x1024@transformer.h.0.mlp.c_proj         4831838208
    gpt2      1x1024@lm_head                           79047426048
    gpt2      1x1024                                  291648307200
    """,
)

# Elements of the input and of every layer not done in place, and weights without biases.
COURSE_NOTES = table(
    "CS231n notes and the tables of VGG-16 and VGG-19 that repeat them",
    """
    network  input@layer       cs231n_elements  cs231n_weights  cs231n_Melements  cs231n_Mweights
    vgg16    224@features.0                  -            1728                 -                -
    vgg16    224@features.2                  -           36864                 -                -
    vgg16    224@features.5                  -           73728                 -                -
    vgg16    224@features.7                  -          147456                 -                -
    vgg16    224@features.10                 -          294912                 -                -
    vgg16    224@features.12                 -          589824                 -                -
    vgg16    224@features.17                 -         1179648                 -                -
    vgg16    224@features.19                 -         2359296                 -                -
    vgg16    224@classifier.0             4096       102760448                 -                -
    vgg16    224@classifier.3             4096        16777216                 -                -
    vgg16    224@classifier.6             1000         4096000                 -                -
    vgg16    224                             -               -                15              138
    vgg19    224                      16542184       143652544                 -                -
    """,
)

MATCONVNET = table(
    "vlfeat/matconvnet, vl_simplenn_display of a patch classifier",
    """
    network  input@layer  field  matconvnet_stride  matconvnet_offset  matconvnet_data_KB
    patch32  32@conv1         3                  1                  1                 512
    patch32  32@pool1         6                  2                1.5                 128
    patch32  32@conv3        10                  2                1.5                 256
    patch32  32@conv4        14                  2                1.5                 256
    patch32  32@pool2        16                  4                2.5                  64
    patch32  32@conv6        32                  4                2.5                 128
    patch32  32@pool3        36                  8                4.5                  32
    patch32  32@conv8        68                  8                4.5                  32
    patch32  32@fc9          92                 32               16.5                   4
    """,
)

FIGURES = (
    *TORCHVISION, *TIMM, *RECEPTIVE_FIELDS, *CONVNET_BURDEN, *NETSCOPE, *BODA, *MOBILENET_V1,
    *MOBILENET_V2, *RESNET_PAPER, *EARLY_NETWORKS, *EFFICIENTNET_PAPER, *CONVNEXT_README,
    *MOBILENET_V3_README, *SWIN_README, *LANGUAGE_MODELS, *NANOGPT, *COURSE_NOTES, *MATCONVNET,
)  # fmt: skip
